// A language that programs are written in: its names, how a program is made ready, and how it is started. Every folder may read this; only the
// sandbox starts programs. A new language is a file beside python.ts: npm run docs puts it into list.ts.

import type { MakeCall, Signature } from "./call.ts";

export const megabyte = 1024 ** 2;

export interface Language {
  /** What people call it. */
  title: string;
  /** Tags of code fences, in lower case; the first stands in a prompt. */
  tags: readonly [string, ...string[]];
  /** Sandbox Fusion's name. */
  fusion: string;
  /** What the file of a program is called where it is compiled or run. */
  fileName: string;
  /** Begins a comment that ends with the line. */
  comment: string;
  /** Its keywords, with blanks, where they are not those of languages with braces: programs are shown with them highlighted. */
  keywords?: string;
  /** What a start takes on a busy machine; added to the wall limit of each test. */
  startMs: number;
  /** Said in a question, after how input arrives: how the file is run and what it has to be. */
  note?: string;
  /** The function that a question asks for, to be completed; without it the question only names it. */
  starter?(asked: Signature): string;
  /** A program that prints the sum of two numbers: it proves that the language works here. */
  sum: string;
  /** How a process of its own is started for every test; null: a fork of the interpreter that is warm already. */
  runtime: Runtime | null;
  /** Python: packages that take long to import, and the words of a program that could be names of imported ones. */
  packages?: { slow: readonly string[]; importedWords(source: string): Set<string> };
}

/** Compilers and interpreters, as this machine has them. */
export interface Runtime {
  /** Looks for them on this machine; where they are missing, a text that says what was looked for. */
  find(): Promise<Tools | string>;
  /** What to type to have them. */
  install: string;
  /** Turns a program into what `Tools` take, outside the jail, so it must be safe for any text. Throws ProgramError. */
  translate?(source: string): Promise<Translated>;
  /** Makes a program call its functions; without it, programs of the language only read stdin. */
  call?: MakeCall;
  /** What a program writes to stderr when it fails for memory or does not compile. It names a failure, it never decides on one. */
  signs: { memory: RegExp; compile?: RegExp };
}

/** A file or a folder; with a second path, shown there instead where the level can move files. */
export type Held = string | readonly [path: string, place: string];
/** Where a program finds it. */
export type PlaceOf = (held: Held) => string;

/** Folders that the jail has of its own. */
export const jailFolders = ["/tmp", "/dev", "/proc"];
/** A file of this machine, shown elsewhere where it lies in such a folder. */
export const shown = (path: string): Held =>
  jailFolders.some((folder) => path.startsWith(`${folder}/`)) ? [path, `/opt${path}`] : path;

export interface Tools {
  /** With its version: "Node 20.19.2". */
  version: string;
  /** Files and folders that a program needs where it runs; none: what every program sees is enough. */
  files: readonly Held[];
  /** In the jail, once per program: from the program's file to `output`. */
  compile?: Compile;
  /** Starts a test in the folder of the program. `call`: one call of a function, by the harness. */
  command(start: { memoryBytes: number; call: boolean; at: PlaceOf }): readonly string[];
  environment?: Readonly<Record<string, string>>;
  /** Asked for by typecheck=true: in the jail, once per program, before it is translated. A text: what was not found, and what brings it. */
  check?: Check | string;
  /** Address space beyond a program's memory: what the runtime reserves and does not use. */
  addressBytes: number;
  /** Of the first thread, and of others that ask for nothing else. */
  stackBytes: number;
}

/** What one process makes: the file that is run, or that the next one takes. */
export interface Step {
  command: readonly string[];
  output: string;
}

export interface Compile {
  /** Files and folders of the compiler. */
  files: readonly Held[];
  /** Makes what of `files` has to be made on this machine; before the first program. */
  prepare?(): Promise<void>;
  /** What the program's file has to be called, where its text says so. */
  fileName?(source: string): string;
  /** Files of ours beside it; those that are compiled with it are not there when functions are called. */
  beside?(start: { call: boolean; at: PlaceOf }): Readonly<Record<string, string>>;
  /** One after the other, each in a folder with the program, what is beside it and what the one before made. None starts another process. */
  steps(start: { names: readonly string[]; at: PlaceOf }): readonly Step[];
  environment?: Readonly<Record<string, string>>;
}

/** A compiler that is only asked whether it would take the program. */
export interface Check extends Compile {
  /** With its version, and where it was found. */
  version: string;
  /** What it says, as compilers here say it: the place first. */
  said(text: string): string;
}

export interface Translated {
  source: string;
  /** A text in which places in the translation are named, with those in the program instead. */
  inSource(text: string): string;
}

/** The program cannot be made ready, and it is the program's doing. */
export class ProgramError extends Error {
  readonly status: "compile-error" | "target-not-found";

  constructor(message: string, status: ProgramError["status"] = "compile-error") {
    super(message);
    this.status = status;
  }
}
