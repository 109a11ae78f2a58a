// From a name to a data set: finds the files, reads their rows, leaves out what cannot be used and counts it.
import { countOf } from "../core/count.ts";
import { turnTaker } from "../core/turns.ts";
import { Dataset, type DatasetSummary } from "./dataset.ts";
import { DataError } from "./errors.ts";
import { type IndexedFile, indexFile, sourceOfRow, type TestsCheck } from "./file-index.ts";
import { describeProblem, isAboutTests } from "./left-out.ts";
import { idOf, languagesOf, metadataOf, type Problem, questionOf, starterCodeOf } from "./problem.ts";
import type { RowHead } from "./rows.ts";
import { type DownloadProgress, findFiles, type ProblemFile, type SourceOptions, type Split } from "./sources.ts";

/** What to load and what to leave out. */
export interface LoadOptions extends Omit<SourceOptions, "onDownload"> {
  /** Which part of the data. */
  split: Split;
  /** Default 0. */
  seed?: number;
  /** Default: true for train, false for test. */
  shuffle?: boolean;
  /** Rows whose raw tests are larger are left out as `tests_too_big`. Default 50 000 000. */
  maxTestsBytes?: number;
  /** Left out as `blocked`. */
  blockedIds?: readonly string[];
  /** Looks at each row's tests; a row with a reason is left out under it. */
  checkTests?: TestsCheck;
  /** Names the rules of `checkTests`, so that its findings can be kept between runs. */
  checkVersion?: string;
  /** What a reason of `checkTests` means, for people. */
  explainReason?: (reason: string) => string | undefined;
  /** How to write tests that cannot be used, from what they are (JSON text) and which columns the row has; for people. */
  hintForTests?: (tests: string, columns: readonly string[]) => string | undefined;
  /** Why a problem cannot be used that is well in itself: the reason under which it is left out, or null. */
  unfit?: (problem: Problem) => string | null;
  /** False: the problem is left out as `prompt_too_long`. */
  promptFits?: (problem: Problem) => boolean | Promise<boolean>;
  /** Where findings about files are kept. Default: `indexes` in the cache folder. */
  indexFolder?: string;
  /** Called while files are downloaded and rows are read. */
  onProgress?: (progress: LoadProgress) => void;
}

/** How far loading is: downloading, or reading. */
export type LoadProgress =
  | ({ stage: "download" } & DownloadProgress)
  | { stage: "read"; files: number; filesDone: number; rows: number };

const defaultMaxTestsBytes = 50_000_000;

/** Loads `starter`, `deepcoder`, paths to JSONL or Parquet, or a data set of the hub; several with commas. */
export async function loadDataset(specification: string, options: LoadOptions): Promise<Dataset> {
  const { onProgress, split } = options;
  const files = await findFiles(specification, split, {
    ...options,
    onDownload: (progress) => onProgress?.({ stage: "download", ...progress }),
  });
  const selection = new Selection(options);
  let rows = 0;
  for (const [filesDone, file] of files.entries()) {
    const report = () => onProgress?.({ stage: "read", files: files.length, filesDone, rows });
    const indexed = await indexFile(file, { maxTestsBytes: defaultMaxTestsBytes, ...options }, () => {
      rows++;
      report();
    });
    await selection.add(file, indexed);
  }
  onProgress?.({ stage: "read", files: files.length, filesDone: files.length, rows });
  return selection.finish(specification, files);
}

/** Collects problems and counts what is left out. */
class Selection {
  readonly #options: LoadOptions;
  readonly #blocked: ReadonlySet<string>;
  readonly #problems: Problem[] = [];
  readonly #ids = new Set<string>();
  readonly #summary: DatasetSummary = { read: 0, kept: 0, dropped: {}, firstDropped: {}, bySource: {} };
  /** Rows so far per source and split: rows without an id are numbered over all files of their part. */
  readonly #rows = new Map<string, number>();

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#blocked = new Set(options.blockedIds);
  }

  async add(file: ProblemFile, { rows, notes }: IndexedFile): Promise<void> {
    let row = 0;
    const takeTurns = turnTaker();
    for await (const head of rows.heads()) {
      const { fields } = head;
      const note = notes[row];
      if (!note) break;
      const index = row++;
      const source = sourceOfRow(fields.source, file);
      const own = languagesOf(fields);
      // Starter code is Python, unless the row itself says what it is.
      const isOther = own === undefined && file.languages !== undefined && file.languages.join() !== "python";
      const problem: Problem = {
        id: idOf(fields) ?? this.#number(file),
        source,
        question: questionOf(fields) ?? "",
        starterCode: isOther ? null : starterCodeOf(fields),
        languages: own ?? file.languages,
        metadata: metadataOf(fields),
        testsBytes: note.testsBytes,
        facts: note.facts,
        loadTests: () => rows.loadTests(note.place),
        loadSolutions: () => rows.loadSolutions(note.place, index),
      };
      this.#summary.read++;
      const wrong = own === null && note.reason !== "bad_row" ? "unknown_language" : note.reason;
      const reason = wrong === "bad_row" ? "bad_row" : await this.#reasonToDrop(problem, wrong);
      if (reason === null) this.#keep(problem);
      else await this.#leaveOut(reason, file, head, problem);
      this.#options.signal?.throwIfAborted();
      await takeTurns();
    }
    if (row === notes.length) return;
    throw new DataError(
      "data/bad-file",
      `${file.path} had ${notes.length} rows and now has ${row}. Do not change data files while they are read.`,
    );
  }

  async #reasonToDrop(problem: Problem, testsReason: string | null): Promise<string | null> {
    if (this.#blocked.has(problem.id)) return "blocked";
    if (problem.question === "") return "no_question";
    if (testsReason !== null) return testsReason;
    if (this.#ids.has(problem.id)) return "duplicate_id";
    const { promptFits, unfit } = this.#options;
    const reason = unfit?.(problem) ?? null;
    if (reason !== null) return reason;
    return promptFits && !(await promptFits(problem)) ? "prompt_too_long" : null;
  }

  #keep(problem: Problem): void {
    this.#ids.add(problem.id);
    this.#problems.push(problem);
    this.#summary.kept++;
    this.#summary.bySource[problem.source] = (this.#summary.bySource[problem.source] ?? 0) + 1;
  }

  async #leaveOut(reason: string, file: ProblemFile, head: RowHead, { loadTests }: Problem): Promise<void> {
    const { dropped, firstDropped } = this.#summary;
    const { explainReason, hintForTests } = this.#options;
    dropped[reason] = (dropped[reason] ?? 0) + 1;
    if (firstDropped[reason] !== undefined) return;
    const hint = isAboutTests(reason) ? hintForTests?.(await loadTests(), head.columns) : undefined;
    firstDropped[reason] = `${file.path}, ${head.where}: ${describeProblem(head, reason, explainReason, hint)}`;
  }

  #number(file: ProblemFile): string {
    const part = file.split === "" ? file.source : `${file.source}/${file.split}`;
    const number = this.#rows.get(part) ?? 0;
    this.#rows.set(part, number + 1);
    return `${part}/${number}`;
  }

  finish(specification: string, files: readonly ProblemFile[]): Dataset {
    const { seed = 0, split, shuffle = split === "train" } = this.#options;
    if (this.#problems.length === 0) {
      const { read, dropped, firstDropped } = this.#summary;
      const reasons = Object.entries(dropped).map(([reason, count]) => `${count} ${reason} (${firstDropped[reason]})`);
      throw new DataError(
        "data/empty",
        read === 0
          ? `${specification} (${split}) has no rows. Write one JSON object per line, with question and tests.`
          : `None of the ${countOf(read, "row")} of ${specification} (${split}) can be used: ${reasons.join("; ")}. ` +
              "docs/data.md has an example of a row for each kind of problem.",
      );
    }
    const hashes = files.map(({ hash, languages }) => (languages ? `${hash} in ${languages.join()}` : hash));
    return new Dataset(this.#problems, this.#summary, hashes, { shuffle, seed });
  }
}
