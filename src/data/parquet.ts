// Problems from Parquet. Small columns are read row group by row group; tests page by page. Rows of a page that is too large to be read for
// one of them are copied once into a spill file in the cache.
import { open } from "node:fs/promises";
import {
  asyncBufferFromFile,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type SchemaTree,
  toJson,
} from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { messageOf } from "../core/errors.ts";
import { DataError } from "./errors.ts";
import { flatTextColumn, type PageLocation, PageReader, type PageValue } from "./parquet-pages.ts";
import {
  type Fields,
  fieldNames,
  type Place,
  type RowFile,
  type RowHead,
  type ScannedRow,
  solutionNames,
  solutionsOf,
  testsNames,
} from "./rows.ts";
import type { Spill } from "./spill.ts";

// The first number of a place: a row group, or one of these.
const inSpill = -1;
const nested = -2;
const absent = -3;

export class ParquetFile implements RowFile {
  readonly #path: string;
  readonly #spill: Spill;
  #opened: Promise<OpenedFile> | undefined;

  constructor(path: string, spill: Spill) {
    this.#path = path;
    this.#spill = spill;
  }

  async *scan(): AsyncGenerator<ScannedRow> {
    const heads = this.heads();
    for await (const { place, tests } of this.#tests()) {
      const next = await heads.next();
      if (next.done) break;
      yield { place, head: next.value, tests };
    }
    if (!(await heads.next()).done) throw this.#bad("its columns have different lengths");
    await this.#spill.finish();
  }

  async *heads(): AsyncGenerator<RowHead> {
    const { metadata, columns } = await this.#open();
    const fields = fieldNames.filter((name) => columns.includes(name));
    let rowStart = 0;
    let number = 0;
    for (const group of metadata.row_groups) {
      const rowEnd = rowStart + Number(group.num_rows);
      for (const row of await this.#rows(fields, rowStart, rowEnd))
        yield { fields: toJson(row) as Fields, where: `row ${++number}`, columns };
      rowStart = rowEnd;
    }
  }

  async loadTests(place: Place): Promise<string> {
    const [where = absent, position = 0, inPage = 0] = place;
    if (where === absent) return "null";
    if (where === inSpill) return (await this.#spill.read(position, inPage)).toString("utf8");
    const { metadata, tests } = await this.#open();
    const { name, flat } = tests!;
    if (where === nested) {
      const [values] = await this.#rows([name], position, position + 1);
      return JSON.stringify(toJson(values?.[name] ?? null));
    }
    const file = await open(this.#path);
    try {
      const values = await new PageReader(file, metadata, flat!).readAgain({ rowGroup: where, offset: position });
      const value = values[inPage];
      return value instanceof Uint8Array ? textOf(value) : "null";
    } catch (error) {
      throw this.#bad(messageOf(error), error);
    } finally {
      await file.close();
    }
  }

  async loadSolutions(_place: Place, row: number): Promise<string[]> {
    const { columns } = await this.#open();
    const present = solutionNames.filter((name) => columns.includes(name));
    if (present.length === 0) return [];
    const [values] = await this.#rows(present, row, row + 1);
    return solutionsOf((name) => values?.[name]);
  }

  async *#tests(): AsyncGenerator<PlacedTests> {
    const { metadata, tests: column } = await this.#open();
    if (!column?.flat) return yield* this.#testsByRow(column?.name);
    const file = await open(this.#path);
    try {
      const reader = new PageReader(file, metadata, column.flat);
      for await (const page of reader.pages(this.#spill)) {
        for (const [index, value] of page.values.entries()) yield this.#row(page, index, value);
      }
    } catch (error) {
      throw this.#bad(messageOf(error), error);
    } finally {
      await file.close();
    }
  }

  #row(page: PageLocation, index: number, value: PageValue): PlacedTests {
    if (value === null) return { place: [absent], tests: null };
    const { byteLength } = value;
    if (value instanceof Uint8Array) {
      return { place: [page.rowGroup, page.offset, index], tests: { byteLength, text: () => textOf(value) } };
    }
    if (value.offset < 0) return { place: [absent], tests: { byteLength, text: () => "null" } };
    const place = [inSpill, value.offset, byteLength];
    return { place, tests: { byteLength, text: () => this.loadTests(place) } };
  }

  /** Tests that are lists or structs instead of JSON text, or are not there. */
  async *#testsByRow(name: string | undefined): AsyncGenerator<PlacedTests> {
    const { metadata } = await this.#open();
    let row = 0;
    for (const group of metadata.row_groups) {
      const columns = name === undefined ? [] : [name];
      for (const values of await this.#rows(columns, row, row + Number(group.num_rows))) {
        const value = name === undefined ? null : values[name];
        if (value === null || value === undefined) yield { place: [absent], tests: null };
        else {
          const text = JSON.stringify(toJson(value));
          yield { place: [nested, row], tests: { byteLength: Buffer.byteLength(text), text: () => text } };
        }
        row++;
      }
    }
  }

  async #rows(columns: string[], rowStart: number, rowEnd: number): Promise<Record<string, unknown>[]> {
    if (columns.length === 0) return Array.from({ length: rowEnd - rowStart }, () => ({}));
    const { metadata } = await this.#open();
    try {
      const file = await asyncBufferFromFile(this.#path);
      return await parquetReadObjects({ file, metadata, columns, rowStart, rowEnd, compressors });
    } catch (error) {
      throw this.#bad(messageOf(error), error);
    }
  }

  #open(): Promise<OpenedFile> {
    this.#opened ??= (async () => {
      try {
        const metadata = await parquetMetadataAsync(await asyncBufferFromFile(this.#path));
        const columns = parquetSchema(metadata).children.map((child) => child.element.name);
        const name = testsNames.find((candidate) => columns.includes(candidate));
        const tests = name === undefined ? undefined : { name, flat: flatTextColumn(metadata, name) };
        return { metadata, columns, tests };
      } catch (error) {
        throw this.#bad(messageOf(error), error);
      }
    })();
    return this.#opened;
  }

  #bad(reason: string, cause?: unknown): DataError {
    if (cause instanceof DataError) return cause;
    return new DataError(
      "data/bad-file",
      `${this.#path} cannot be read as Parquet: ${reason}. Check that the file is whole, or download it again.`,
      { cause },
    );
  }
}

const textOf = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");

type PlacedTests = Pick<ScannedRow, "place" | "tests">;

interface OpenedFile {
  metadata: FileMetaData;
  /** The names of all columns. */
  columns: string[];
  /** The column of the tests; `flat` undefined: lists or structs. */
  tests: { name: string; flat: SchemaTree[] | undefined } | undefined;
}
