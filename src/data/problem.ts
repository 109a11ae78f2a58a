// One programming problem, and how the columns that data sets use for it are read.
import { isRecord, jsonObject } from "../core/json.ts";
import { type LanguageName, languageNamed, languagesNamed } from "../core/languages/languages.ts";
import { type Fields, questionNames } from "./rows.ts";

/** A problem without its tests and solutions, which are read from disk when they are asked for. */
export interface Problem {
  /** Unique in its data set, and the same in every run. */
  readonly id: string;
  /** Where it comes from, e.g. "taco"; the shape of its tests depends on it. */
  readonly source: string;
  /** The text of the problem. */
  readonly question: string;
  /** Code that an answer completes, or null. */
  readonly starterCode: string | null;
  /** Languages that an answer may be in; undefined: those of the run. */
  readonly languages?: readonly LanguageName[] | undefined;
  /** Further columns of the row, such as the name of the function to write. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Of the raw tests, as UTF-8. */
  readonly testsBytes: number;
  /** What the check of its tests found worth keeping, e.g. the function that they call. */
  readonly facts: unknown;
  /** The raw tests as JSON text, in one of the shapes that data sets use. Never to be logged. */
  loadTests(): Promise<string>;
  /** Reference solutions, where the data set has any. */
  loadSolutions(): Promise<string[]>;
}

/** The statement: the first of these columns that is a text and not empty; undefined when it is blank or there is none. */
export function questionOf(fields: Fields): string | undefined {
  for (const value of questionNames.map((name) => fields[name])) {
    if (typeof value === "string" && value !== "") return value.trim() === "" ? undefined : value;
  }
  return undefined;
}

/** Starter code counts only when it has a character that is not blank. */
export function starterCodeOf(fields: Fields): string | null {
  const value = fields.starter_code;
  return typeof value === "string" && value.trim() !== "" ? value : null;
}

/** The languages that the row names: one, several with commas, or any; null where one is unknown. HumanEval-X has it in "JavaScript/0". */
export function languagesOf({ language, task_id }: Fields): readonly LanguageName[] | undefined | null {
  if (language === undefined || language === null || language === "") {
    const [, prefix] = /^([^/]+)\/\d+$/.exec(typeof task_id === "string" ? task_id : "") ?? [];
    const named = prefix === undefined ? undefined : languageNamed(prefix);
    return named && [named];
  }
  return (typeof language === "string" ? languagesNamed(language) : undefined) ?? null;
}

/** An object, or the JSON text of one; anything else is nothing. HumanEval names the function in a column of its own. */
export function metadataOf(fields: Fields): Record<string, unknown> {
  const { entry_point } = fields;
  return typeof entry_point === "string" ? { func_name: entry_point, ...ownMetadata(fields) } : ownMetadata(fields);
}

function ownMetadata({ metadata }: Fields): Record<string, unknown> {
  if (typeof metadata === "string") return jsonObject(metadata) ?? {};
  return isRecord(metadata) ? metadata : {};
}

/** The row's own id, if it has one. */
export function idOf(fields: Fields): string | undefined {
  for (const value of [fields.id, fields.question_id]) {
    if (typeof value === "string" && value !== "") return value;
    if (typeof value === "number") return String(value);
  }
  return undefined;
}
