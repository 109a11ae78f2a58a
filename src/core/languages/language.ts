/**
 * A language that programs are written in: what people call it, and how a program of it begins. Data that every folder may read; the
 * sandbox does the starting. A new language is a file beside python.ts and a line in languages.ts.
 */
export interface Language {
  /** The tag of the code fence in a prompt. */
  fence: string;
  /** What the file of a program is called where it runs. */
  fileName: string;
  /** Starts the program: found on the sandbox's PATH, with the file as last argument. null: a fork of the interpreter that is warm already. */
  command: readonly [string, ...string[]] | null;
  /** What a start takes on a busy machine; added to the wall limit of each test. */
  startMs: number;
  /** Modules that take long to import: a program that mentions one is forked from an interpreter that has imported it. */
  slowModules: readonly string[];
  /** The words of a program that could be names of imported modules. */
  importedWords(source: string): Set<string>;
}
