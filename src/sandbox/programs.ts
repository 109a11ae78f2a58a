// Makes programs ready to be run: in Python there is nothing to do, elsewhere they are translated, or compiled in the jail. Equal programs are made
// once. Compiling sees neither inputs nor what is expected; whatever goes wrong in it, but for the jail itself, is the program's failure.
import { createHash } from "node:crypto";
import { extname } from "node:path";
import { messageOf } from "../core/errors.ts";
import type { Call, Called, MakeCall } from "../core/languages/call.ts";
import {
  type Check,
  type Compile,
  type Held,
  type Language,
  megabyte,
  type PlaceOf,
  ProgramError,
  type Runtime,
  type Tools,
  type Translated,
} from "../core/languages/language.ts";
import { type LanguageName, languageOf, toolsOf } from "../core/languages/languages.ts";
import type { ExecuteRequest, ExecuteResult } from "./execute.ts";
import {
  defaultLimits,
  type Sandbox,
  SandboxError,
  type TestInput,
  type TestOutcome,
  withoutEvidence,
} from "./sandbox.ts";

/** How a slot starts a program. */
export interface Program {
  /** The file that is run or given to an interpreter. */
  bytes: Uint8Array;
  name: string;
  /** Started in the program's folder; null: a fork of the warm interpreter. */
  command: readonly string[] | null;
  /** Further files in its folder. */
  beside: Readonly<Record<string, string>>;
  environment: Readonly<Record<string, string>>;
  addressBytes: number;
  stackBytes: number;
  /** What it needs beyond the files that every program sees. */
  files: readonly Held[];
  /** What it wrote to stderr, as somebody who knows the source reads it. */
  inSource(text: string): string;
}

/** What is run, and the functions that are called instead of it reading stdin. */
export interface Wanted {
  language: LanguageName | undefined;
  source: string;
  calls: readonly Call[];
  memoryBytes: number;
}

/** The functions that tests call, each once. */
export function callsOf(tests: readonly TestInput[]): Call[] {
  const calls = new Map<string, Call>();
  for (const test of tests)
    if (test.kind === "call") {
      const call = { name: test.functionName, count: test.argumentsJson.length };
      calls.set(JSON.stringify(call), call);
    }
  return [...calls.values()];
}

const same = (text: string) => text;

/** A Python program, or what stands for one. */
export const pythonProgram = (source: string, name: string): Program => ({
  bytes: Buffer.from(source),
  name,
  ...{ command: null, beside: {}, environment: {}, addressBytes: 0, stackBytes: 0, files: [], inSource: same },
});

const compileMs = 30_000;
const maxCompiledBytes = 64 * megabyte;
const maxRememberedBytes = 256 * megabyte;
const shownOfErrors = 4096;

interface Compiled {
  bytes: Uint8Array;
  name: string;
  failed?: string;
}

/** Runs a compiler in a slot where its files are. */
type RunCompiler = (files: readonly Held[], program: Program, request: ExecuteRequest) => Promise<ExecuteResult>;

export class Programs {
  readonly #run: RunCompiler;
  readonly #at: PlaceOf;
  readonly #typecheck: boolean;
  readonly #compiled = new Map<string, Promise<Compiled>>();
  readonly #sizes = new Map<string, number>();
  #bytes = 0;

  /** `at`: where a program sees files. `typecheck`: programs whose types do not fit are none, where a language has types apart. */
  constructor(run: RunCompiler, at: PlaceOf, typecheck: boolean) {
    this.#run = run;
    this.#at = at;
    this.#typecheck = typecheck;
  }

  /** Rejects with ProgramError when the program is to blame, with SandboxError when nothing can be said of it. */
  async ready({ language: name = "python", source, calls, memoryBytes }: Wanted): Promise<Program> {
    const language = languageOf(name);
    if (!language.runtime) return pythonProgram(source, language.fileName);
    const { runtime } = language;
    const tools = await requiredTools(name);
    if (this.#typecheck && tools.check !== undefined) await this.#check(language, tools.check, source);
    const { source: translated, inSource } = await translatedOf(name, source);
    const isCall = calls.length > 0;
    const called: Called = isCall ? callingOf(name)(translated, calls, "descriptor") : { source: translated };
    const { compile } = tools;
    const common = {
      command: tools.command({ memoryBytes, call: isCall, at: this.#at }),
      environment: tools.environment ?? {},
      ...{ addressBytes: tools.addressBytes, stackBytes: tools.stackBytes, files: tools.files, inSource },
    };
    if (!compile)
      return {
        bytes: Buffer.from(called.source),
        name: runtime.translate ? language.fileName.replace(/\.ts$/, ".js") : language.fileName,
        beside: called.beside ?? {},
        ...common,
      };
    const compiled = await this.#remembered(language, compile, called.source, isCall ? "call" : "program");
    if (compiled.failed !== undefined)
      throw new ProgramError(compiled.failed, called.missing?.(compiled.failed) ? "target-not-found" : undefined);
    return { bytes: compiled.bytes, name: compiled.name, beside: {}, ...common };
  }

  async #check(language: Language, check: Check | string, source: string): Promise<void> {
    if (typeof check === "string")
      throw new SandboxError(
        "sandbox/no-typecheck",
        `Types of ${language.title} programs cannot be checked here: there is no ${check}. Or leave out typecheck=true.`,
      );
    const { failed } = await this.#remembered(language, check, source, "check");
    if (failed !== undefined) throw new ProgramError(check.said(failed));
  }

  #remembered(
    language: Language,
    compile: Compile,
    source: string,
    what: "program" | "call" | "check",
  ): Promise<Compiled> {
    const key = createHash("sha256")
      .update(JSON.stringify([language.title, what]))
      .update(source)
      .digest("base64");
    const known = this.#compiled.get(key);
    if (known) {
      this.#compiled.delete(key);
      this.#compiled.set(key, known);
      return known;
    }
    const compiling = this.#compile(language, compile, source, what === "call");
    this.#compiled.set(key, compiling);
    compiling.then(
      ({ bytes, failed = "" }) => this.#remember(key, bytes.length + failed.length),
      () => this.#compiled.delete(key),
    );
    return compiling;
  }

  #remember(key: string, bytes: number): void {
    this.#sizes.set(key, bytes);
    this.#bytes += bytes;
    for (const oldest of this.#compiled.keys()) {
      if (this.#bytes <= maxRememberedBytes) return;
      const size = this.#sizes.get(oldest);
      if (size === undefined) continue; // is being compiled
      this.#compiled.delete(oldest);
      this.#sizes.delete(oldest);
      this.#bytes -= size;
    }
  }

  async #compile(language: Language, compile: Compile, source: string, isCall: boolean): Promise<Compiled> {
    await compile.prepare?.().catch((error: unknown) => unprepared(language, error));
    const name = compile.fileName?.(source) ?? language.fileName;
    const beside = compile.beside?.({ call: isCall, at: this.#at }) ?? {};
    const program = {
      ...{ bytes: Buffer.from(source), name, beside, environment: compile.environment ?? {}, files: compile.files },
      ...{ addressBytes: 16 * 1024 * megabyte, stackBytes: 64 * megabyte, inSource: same },
    };
    const names = [name, ...Object.keys(beside).filter((one) => extname(one) === extname(name))];
    let made: Compiled = { bytes: new Uint8Array(), name };
    for (const { command, output } of compile.steps({ names, at: this.#at })) {
      const before = made.bytes.length > 0 ? ([[made.name, made.bytes]] as const) : [];
      const request = requestOf(output, new Map(before));
      const result = await this.#run(compile.files, { ...program, command }, request);
      const bytes = result.files.get(output);
      if (result.status !== "finished" || result.exitCode !== 0 || !bytes)
        return { bytes: new Uint8Array(), name, failed: whyNot(result) };
      made = { bytes, name: output };
    }
    return made;
  }
}

const requestOf = (output: string, files: ReadonlyMap<string, Uint8Array>): ExecuteRequest => ({
  ...{ code: "", stdin: "", files, fetchFiles: [output], fetchBytes: maxCompiledBytes },
  limits: {
    ...defaultLimits,
    ...{ wallMs: compileMs, cpuMs: compileMs, memoryBytes: 2048 * megabyte, outputBytes: megabyte },
    ...{ fileBytes: 2 * maxCompiledBytes, scratchBytes: 256 * megabyte },
  },
});

/** A program as its interpreter or compiler takes it. Rejects with ProgramError when the program is to blame. */
export async function translatedOf(name: LanguageName, source: string): Promise<Translated> {
  const { runtime } = languageOf(name);
  return (await runtime?.translate?.(source).catch(untranslated)) ?? { source, inSource: same };
}

/** How a language calls functions; throws where it cannot. */
export function callingOf(name: LanguageName): MakeCall {
  const { title, runtime } = languageOf(name);
  if (runtime?.call) return runtime.call;
  throw new SandboxError(
    "sandbox/no-calls",
    `Functions of ${title} cannot be called: there is no harness for it. Ask for programs that read stdin, or leave problems with functions out.`,
  );
}

function unprepared({ title, runtime }: Language, error: unknown): never {
  throw new SandboxError(
    "sandbox/language-files",
    `What ${title} programs need could not be made (${messageOf(error).slice(-600)}). To have it: ${runtime?.install}. It is kept in the cache folder: see that there is room, or set WHETSTONE_CACHE.`,
    { cause: error },
  );
}

function untranslated(error: unknown): never {
  if (error instanceof ProgramError) throw error;
  throw new SandboxError(
    "sandbox/translator",
    `The program could not be translated (${messageOf(error).split("\n")[0]}). It is not a verdict on the program; grade it again, and look at the memory of this machine.`,
    { cause: error },
  );
}

function whyNot(result: ExecuteResult): string {
  const said = Buffer.concat([result.stderr, result.stdout]).toString("utf8").trim().slice(0, shownOfErrors);
  if (result.status === "time-limit") return `compiling took more than ${compileMs / 1000} s\n${said}`;
  if (result.status === "memory-limit") return `compiling took too much memory\n${said}`;
  if (result.filesLeftOut.length > 0) return `what was compiled is larger than ${maxCompiledBytes} bytes\n${said}`;
  return said === "" ? `the compiler ended with ${result.exitCode ?? `signal ${result.signal}`}` : said;
}

/** For the program that is to blame, the error is the result. */
export function orProgramError(error: unknown): ProgramError {
  if (error instanceof ProgramError) return error;
  throw error;
}

/** What a program that could not be made left. */
export const notMade = ({ message, status }: ProgramError): TestOutcome => ({
  ...withoutEvidence(),
  status,
  stderrTail: message,
  exitCode: 1,
});

/** An outcome with its stderr in terms of the source, and a failure named by what stands there. */
export function named(
  outcome: TestOutcome,
  inSource: Program["inSource"],
  { memory, compile }: Runtime["signs"],
): TestOutcome {
  const stderrTail = inSource(outcome.stderrTail);
  const { status } = outcome;
  if (status !== "runtime-error") return { ...outcome, stderrTail };
  if (memory.test(stderrTail)) return { ...outcome, stderrTail, status: "memory-limit" };
  return compile?.test(stderrTail) ? { ...outcome, stderrTail, status: "compile-error" } : { ...outcome, stderrTail };
}

/** What this machine has to run a language; rejects where it does not. */
export async function requiredTools(name: LanguageName): Promise<Tools> {
  const tools = await toolsOf(name);
  if (typeof tools !== "string") return tools;
  const { title, runtime } = languageOf(name);
  throw new SandboxError(
    "sandbox/no-language",
    `${title} programs cannot run here: ${tools} was not found. To have it: ${runtime?.install}.`,
  );
}

/** Whether a program of the language does what it should; rejects with what it did instead. */
export async function proveLanguage(sandbox: Pick<Sandbox, "run">, name: LanguageName): Promise<void> {
  const { title, sum, runtime } = languageOf(name);
  const tests = [{ kind: "stdin", stdin: "17 25\n" } as const];
  const job = { language: name, source: sum, tests, limits: { ...defaultLimits, wallMs: 30_000 }, preamble: true };
  const [outcome] = await sandbox.run(job, () => "continue");
  if (outcome?.status === "finished" && Buffer.from(outcome.stdout).toString().trim() === "42") return;
  throw new SandboxError(
    "sandbox/language-broken",
    `${title} programs do not work here: one that adds two numbers ended as ${outcome?.status} (${outcome?.stderrTail.trim().slice(-300)}). To have it: ${runtime?.install}.`,
  );
}
