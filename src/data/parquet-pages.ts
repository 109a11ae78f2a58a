// Reads one text column of a Parquet file page by page, as bytes. A page is the smallest part of a file that can be read by itself, so
// memory is bounded by the largest page and not by the column (one file of tests can unpack to several gigabytes).
import type { FileHandle } from "node:fs/promises";
import { type ColumnMetaData, type FileMetaData, type PageHeader, parquetSchema, type SchemaTree } from "hyparquet";
import { parquetHeader, readPage } from "hyparquet/src/column.js";
import { DEFAULT_PARSERS } from "hyparquet/src/convert.js";
import { compressors } from "hyparquet-compressors";

/** Where a page is: enough to read it again. */
export interface PageLocation {
  rowGroup: number;
  /** Of the page header, in the file. */
  offset: number;
}

export interface Page extends PageLocation {
  /** Bytes to unpack for a row of this page, its dictionary included. */
  unpackedBytes: number;
  values: PageValues;
}

/** A value of the column: its bytes (a view that is valid while the page is), or null. */
export type PageValues = (Uint8Array | null)[];

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

  /** Every page with its values, in the order of the rows. */
  async *pages(): AsyncGenerator<Page> {
    for (const [rowGroup, group] of this.#metadata.row_groups.entries()) {
      const column = this.#chunk(rowGroup);
      let dictionary: unknown[] | undefined;
      let dictionaryBytes = 0;
      let offset = startOf(column);
      const end = offset + Number(column.total_compressed_size);
      let rowsLeft = Number(group.num_rows);
      while (offset < end && rowsLeft > 0) {
        const { header, headerBytes } = await this.#header(offset);
        const page = { offset, headerBytes, compressedBytes: header.compressed_page_size };
        offset += headerBytes + header.compressed_page_size;
        if (header.type === "DICTIONARY_PAGE") {
          dictionary = await this.#read(column, header, page, undefined);
          dictionaryBytes = header.uncompressed_page_size;
        } else if (header.type === "DATA_PAGE" || header.type === "DATA_PAGE_V2") {
          const values = toBytes(await this.#read(column, header, page, dictionary));
          yield {
            rowGroup,
            offset: page.offset,
            unpackedBytes: header.uncompressed_page_size + dictionaryBytes,
            values,
          };
          rowsLeft -= values.length;
        }
      }
    }
  }

  /** The values of a page that was seen before. */
  async readAgain(location: PageLocation): Promise<PageValues> {
    const column = this.#chunk(location.rowGroup);
    const { header, headerBytes } = await this.#header(location.offset);
    const page = { offset: location.offset, headerBytes, compressedBytes: header.compressed_page_size };
    let dictionary: unknown[] | undefined;
    const start = startOf(column);
    if (start < location.offset) {
      const first = await this.#header(start);
      if (first.header.type === "DICTIONARY_PAGE") {
        const page = {
          offset: start,
          headerBytes: first.headerBytes,
          compressedBytes: first.header.compressed_page_size,
        };
        dictionary = await this.#read(column, first.header, page, undefined);
      }
    }
    return toBytes(await this.#read(column, header, page, dictionary));
  }

  #chunk(rowGroup: number): ColumnMetaData {
    const chunks = this.#metadata.row_groups[rowGroup]?.columns;
    const chunk = chunks?.find(({ meta_data }) => meta_data?.path_in_schema[0] === this.#name);
    if (!chunk?.meta_data) throw new Error(`row group ${rowGroup} has no column ${this.#name}`);
    return chunk.meta_data;
  }

  /** Page headers have no length of their own: read a little, and more when it was too little. */
  async #header(offset: number): Promise<{ header: PageHeader; headerBytes: number }> {
    for (let size = 1024; ; size *= 16) {
      const bytes = await this.#bytes(offset, size);
      const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
      try {
        return { header: parquetHeader(reader), headerBytes: reader.offset };
      } catch (error) {
        // A header holds the smallest and largest value of its page, which may be long.
        if (bytes.length < size || size > largestHeaderBytes) throw error;
      }
    }
  }

  async #read(
    column: ColumnMetaData,
    header: PageHeader,
    page: { offset: number; headerBytes: number; compressedBytes: number },
    dictionary: unknown[] | undefined,
  ): Promise<unknown[]> {
    const bytes = await this.#bytes(page.offset + page.headerBytes, page.compressedBytes);
    if (bytes.length < page.compressedBytes) throw new Error("the file ends inside a page");
    const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
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
    const { data } = readPage(reader, header, decoder, dictionary, undefined, 0);
    return (data ?? []) as unknown[];
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

const startOf = (column: ColumnMetaData) => Number(column.dictionary_page_offset || column.data_page_offset);

const toBytes = (values: unknown[]): PageValues =>
  Array.from(values, (value) => (value instanceof Uint8Array ? value : null));
