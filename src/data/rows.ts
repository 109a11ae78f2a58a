// What a file of problems gives, whatever its format: rows in order, their tests apart, because tests can be larger than everything
// else together and are needed only when a problem is graded.

/** The columns of a row that are kept in memory. */
export const fieldNames = [
  "id",
  "question_id",
  "source",
  "question",
  "prompt",
  "problem",
  "question_content",
  "starter_code",
  "metadata",
  "entry_point",
  "language",
  "task_id",
] as const;

export type Fields = Partial<Record<(typeof fieldNames)[number], unknown>>;

/** The column of the statement: the first of these that a row has. */
export const questionNames = ["question", "prompt", "problem", "question_content"] as const;

/** The column of the tests: the first of these that a row has. */
export const testsNames = ["tests", "ground_truth", "test", "full_test_func"] as const;

/** LiveCodeBench's columns of tests, which are one object of both in JSON lines. */
export const halvesOfTests = ["public_test_cases", "private_test_cases"] as const;

/** The columns that reference solutions are read from. */
export const solutionNames = ["solutions", "solution", "canonical_solution", "declaration", "entry_point", "prompt"];

/** Reference solutions: a list, one, or what completes a declaration (HumanEval-X) or a prompt (HumanEval). */
export function solutionsOf(column: (name: string) => unknown): string[] {
  const canonical = column("canonical_solution");
  const declared = column("declaration") ?? (typeof column("entry_point") === "string" ? column("prompt") : "");
  const whole =
    typeof canonical === "string" ? `${typeof declared === "string" ? declared : ""}${canonical}` : undefined;
  const given = column("solutions") ?? column("solution") ?? whole;
  return (Array.isArray(given) ? given : [given]).flatMap((item: unknown) => {
    const code = item instanceof Map ? (item.get("code") as unknown) : item;
    return typeof code === "string" ? [code] : [];
  });
}

/** Where a row's tests are; numbers that only the file's reader understands. */
export type Place = readonly number[];

export interface RawTests {
  /** As UTF-8. */
  byteLength: number;
  /** JSON text. To be called before the next row is asked for. */
  text(): string | Promise<string>;
}

/** A row without its tests. */
export interface RowHead {
  fields: Fields;
  /** Where it stands in its file, for people: "line 3", "row 17". */
  where: string;
  /** The columns that it has, known ones or not. */
  columns: readonly string[];
  /** Why it cannot be read, with the place where that shows; undefined when it can. */
  problem?: string;
}

export interface ScannedRow {
  place: Place;
  head: RowHead;
  /** The raw tests; null when the row has none. */
  tests: RawTests | null;
}

export interface RowFile {
  /** Every row with its tests, one at a time. */
  scan(): AsyncGenerator<ScannedRow>;
  /** Every row without its tests; quick. */
  heads(): AsyncGenerator<RowHead>;
  /** The raw tests of a row, as JSON text. */
  loadTests(place: Place): Promise<string>;
  /** The reference solutions of a row, where the file has them. */
  loadSolutions(place: Place, row: number): Promise<string[]>;
}
