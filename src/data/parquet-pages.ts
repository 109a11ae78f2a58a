// Reads one text column of a Parquet file page by page, as bytes. A page is the smallest part of a file that can be read by itself. Some
// writers put a whole column into one page (a file of tests can unpack to gigabytes); such a page is unpacked as a stream and its values
// are spilled one by one, so that memory is bounded by the largest value and not by the page.
import type { FileHandle } from "node:fs/promises";
import { type ColumnMetaData, type FileMetaData, type PageHeader, parquetSchema, type SchemaTree } from "hyparquet";
import { parquetHeader, readPage } from "hyparquet/src/column.js";
import { DEFAULT_PARSERS } from "hyparquet/src/convert.js";
import { readRleBitPackedHybrid } from "hyparquet/src/encoding.js";
import { compressors } from "hyparquet-compressors";
import { SnappyUnpacker, WindowError } from "./snappy-stream.ts";
import type { Spill } from "./spill.ts";
import { type StoredValue, ValueSplitter } from "./stored-values.ts";

/** Where a page is: enough to read it again. */
export interface PageLocation {
  rowGroup: number;
  /** Of the page header, in the file. */
  offset: number;
}

export interface Page extends PageLocation {
  values: PageValue[];
}

/** A value of the column: its bytes (a view that is valid while the page is), where it was stored, or null. */
export type PageValue = Uint8Array | StoredValue | null;

/** A page that unpacks to more than this is not read again for one of its rows: its values are spilled. */
const largestPageBytes = 8 << 20;

/** Read at a time from a large page. Snappy unpacks to at most about 21 times this. */
const chunkBytes = 1 << 18;

/** The column `name` if it holds one text or binary value per row, so that it can be read by pages. */
export function flatTextColumn(metadata: FileMetaData, name: string): SchemaTree[] | undefined {
  const root = parquetSchema(metadata);
  const column = root.children.find((child) => child.element.name === name);
  const isFlat = column && column.children.length === 0 && column.element.repetition_type !== "REPEATED";
  return isFlat && column.element.type === "BYTE_ARRAY" ? [root, column] : undefined;
}

const largestHeaderBytes = 1 << 28;

export class PageReader {
  readonly #file: FileHandle;
  readonly #metadata: FileMetaData;
  readonly #schemaPath: SchemaTree[];
  readonly #name: string;

  constructor(file: FileHandle, metadata: FileMetaData, schemaPath: SchemaTree[]) {
    this.#file = file;
    this.#metadata = metadata;
    this.#schemaPath = schemaPath;
    this.#name = schemaPath[1]!.element.name;
  }

  /** Every page with its values, in the order of the rows. Values of large pages are spilled; the others are views. */
  async *pages(spill: Spill): AsyncGenerator<Page> {
    for (const [rowGroup, group] of this.#metadata.row_groups.entries()) {
      const column = this.#chunk(rowGroup);
      let dictionary: unknown[] | undefined;
      let offset = startOf(column);
      const end = offset + Number(column.total_compressed_size);
      let rowsLeft = Number(group.num_rows);
      while (offset < end && rowsLeft > 0) {
        const page = await this.#page(offset);
        offset = page.end;
        const { type } = page.header;
        if (type === "DICTIONARY_PAGE") {
          dictionary = isLarge(page.header)
            ? await this.#spill(column, page, undefined, spill)
            : await this.#read(column, page);
        } else if (type === "DATA_PAGE" || type === "DATA_PAGE_V2") {
          // A row that fills its page alone is no reason to spill it.
          const spills = isLarge(page.header) && valueCount(page.header) > 1;
          const values = spills
            ? await this.#spill(column, page, dictionary, spill)
            : await this.#read(column, page, dictionary);
          yield { rowGroup, offset: page.offset, values: toValues(values) };
          rowsLeft -= values.length;
        }
      }
    }
  }

  /** The values of a page that was seen before and is not large. */
  async readAgain(location: PageLocation): Promise<PageValue[]> {
    const column = this.#chunk(location.rowGroup);
    const first = await this.#page(startOf(column));
    const dictionary = first.header.type === "DICTIONARY_PAGE" ? await this.#read(column, first) : undefined;
    return toValues(await this.#read(column, await this.#page(location.offset), dictionary));
  }

  #chunk(rowGroup: number): ColumnMetaData {
    const chunks = this.#metadata.row_groups[rowGroup]?.columns;
    const chunk = chunks?.find(({ meta_data }) => meta_data?.path_in_schema[0] === this.#name);
    if (!chunk?.meta_data) throw new Error(`row group ${rowGroup} has no column ${this.#name}`);
    return chunk.meta_data;
  }

  /** Page headers have no length of their own: read a little, and more when it was too little. */
  async #page(offset: number): Promise<PageHead> {
    for (let size = 1024; ; size *= 16) {
      const bytes = await this.#bytes(offset, size);
      const reader = readerOf(bytes);
      try {
        const header = parquetHeader(reader);
        const dataOffset = offset + reader.offset;
        return { header, offset, dataOffset, end: dataOffset + header.compressed_page_size };
      } catch (error) {
        // A header holds the smallest and largest value of its page, which may be long.
        if (bytes.length < size || size > largestHeaderBytes) throw error;
      }
    }
  }

  async #read(column: ColumnMetaData, page: PageHead, dictionary?: unknown[]): Promise<unknown[]> {
    const length = page.header.compressed_page_size;
    const bytes = await this.#bytes(page.dataOffset, length);
    if (bytes.length < length) throw new Error("the file ends inside a page");
    const keepBytes = (value: Uint8Array) => value;
    const decoder = {
      pathInSchema: column.path_in_schema,
      type: column.type,
      codec: column.codec,
      element: this.#schemaPath[1]!.element,
      schemaPath: this.#schemaPath,
      parsers: { ...DEFAULT_PARSERS, stringFromBytes: keepBytes, jsonFromBytes: keepBytes },
      compressors,
      utf8: false,
    };
    const { data } = readPage(readerOf(bytes), page.header, decoder, dictionary, undefined, 0);
    return (data ?? []) as unknown[];
  }

  /** The values of a large page, spilled one by one. */
  async #spill(
    column: ColumnMetaData,
    page: PageHead,
    dictionary: unknown[] | undefined,
    spill: Spill,
  ): Promise<(StoredValue | null)[]> {
    const isPlain = page.header.type === "DICTIONARY_PAGE" || page.header.data_page_header?.encoding === "PLAIN";
    if (isPlain && (column.codec === "SNAPPY" || column.codec === "UNCOMPRESSED")) {
      try {
        return await this.#stream(column.codec, page, spill);
      } catch (error) {
        if (!(error instanceof WindowError)) throw error;
      }
    }
    const stored: (StoredValue | null)[] = [];
    for (const value of toValues(await this.#read(column, page, dictionary))) {
      if (!(value instanceof Uint8Array)) stored.push(value);
      else {
        const { byteLength } = value;
        stored.push({ offset: byteLength > spill.maxBytes ? -1 : await spill.append(value), byteLength });
      }
    }
    return stored;
  }

  async #stream(codec: "SNAPPY" | "UNCOMPRESSED", page: PageHead, spill: Spill): Promise<(StoredValue | null)[]> {
    const { header } = page;
    const isOptional = this.#schemaPath[1]!.element.repetition_type !== "REQUIRED";
    const levels = new LevelPrefix(header.type === "DATA_PAGE" && isOptional);
    const splitter = new ValueSplitter(spill);
    const take = (bytes: Uint8Array) => splitter.push(levels.take(bytes));
    const unpacker = codec === "SNAPPY" ? new SnappyUnpacker(take) : undefined;
    for (let offset = page.dataOffset; offset < page.end; offset += chunkBytes) {
      const chunk = await this.#bytes(offset, Math.min(chunkBytes, page.end - offset));
      if (chunk.length === 0) throw new Error("the file ends inside a page");
      if (unpacker) unpacker.push(chunk);
      else take(chunk);
      await splitter.drain();
    }
    unpacker?.finish();
    const values = await splitter.finish();
    return levels.insertNulls(values, valueCount(header));
  }

  async #bytes(offset: number, length: number): Promise<Uint8Array> {
    const buffer = new Uint8Array(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await this.#file.read(buffer, filled, length - filled, offset + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return buffer.subarray(0, filled);
  }
}

interface PageHead {
  header: PageHeader;
  /** Of the header, of the data after it, and of what follows the page, in the file. */
  offset: number;
  dataOffset: number;
  end: number;
}

/** The bits that say which rows have a value, which stand before the values of a page. */
class LevelPrefix {
  #prefix: Uint8Array | undefined;

  constructor(isThere: boolean) {
    if (isThere) this.#prefix = new Uint8Array(0);
  }

  /** Set when the whole prefix has been seen. */
  #levels: Uint8Array | undefined;

  /** The part of a piece of the page that is values. */
  take(bytes: Uint8Array): Uint8Array {
    if (!this.#prefix || this.#levels) return bytes;
    const seen = Buffer.concat([this.#prefix, bytes]);
    const end = seen.length < 4 ? Number.POSITIVE_INFINITY : 4 + seen.readUInt32LE(0);
    if (seen.length < end) {
      this.#prefix = seen;
      return bytes.subarray(bytes.length);
    }
    this.#levels = Uint8Array.from(seen.subarray(0, end));
    return seen.subarray(end);
  }

  insertNulls(values: readonly StoredValue[], rows: number): (StoredValue | null)[] {
    if (!this.#levels) return [...values];
    const present = new Array<number>(rows).fill(0);
    readRleBitPackedHybrid(readerOf(this.#levels), 1, present);
    let next = 0;
    return present.map((level) => (level === 1 ? (values[next++] ?? null) : null));
  }
}

const isLarge = (header: PageHeader) => header.uncompressed_page_size > largestPageBytes;

const valueCount = (header: PageHeader) =>
  header.data_page_header?.num_values ??
  header.data_page_header_v2?.num_rows ??
  header.dictionary_page_header?.num_values ??
  0;

const startOf = (column: ColumnMetaData) => Number(column.dictionary_page_offset || column.data_page_offset);

const readerOf = (bytes: Uint8Array) => ({
  view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
  offset: 0,
});

const isStored = (value: unknown): value is StoredValue =>
  typeof value === "object" && value !== null && "offset" in value;

/** Rows without a value are null. */
const toValues = (values: ArrayLike<unknown>): PageValue[] =>
  Array.from(values, (value) => (value instanceof Uint8Array || isStored(value) ? value : null));
