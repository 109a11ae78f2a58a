// The embedded jail: runs programs on this machine behind the strongest isolation that proves itself at start.
// `run` is the judge's side (many tests, one program); `execute` runs one program once, as a plain script with files.
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../core/errors.ts";
import { type Held, ProgramError } from "../core/languages/language.ts";
import { type LanguageName, languageOf, languages } from "../core/languages/languages.ts";
import { findOnPath } from "../core/languages/machine.ts";
import { Limiter } from "../core/limiter.ts";
import { Cgroups } from "./cgroups.ts";
import { ControlServer } from "./control.ts";
import { freeName, runOnce, runTests, type SlotLimits, sendJob } from "./conversation.ts";
import { checkFiles, type ExecuteRequest, type ExecuteResult, emptyResult } from "./execute.ts";
import { type HeldContent, HeldFiles } from "./files.ts";
import { findInterpreter, type Interpreter } from "./interpreter.ts";
import { describeLevel, type JailLevel, whyUnavailable } from "./levels.ts";
import {
  confinedCommand,
  confinedReadable,
  type HeldCommand,
  type HolderParts,
  heldCommand,
  jailCommand,
  pathOf,
  placeOf,
  slotUsers,
  unprivilegedUser,
} from "./outer.ts";
import type { Pool } from "./pool.ts";
import { type PoolParts, Pools } from "./pools.ts";
import {
  callsOf,
  named,
  notMade,
  orProgramError,
  type Program,
  Programs,
  proveLanguage,
  pythonProgram,
  requiredTools,
} from "./programs.ts";
import {
  defaultLimits,
  type Job,
  type Limits,
  maxSourceBytes,
  type Sandbox,
  type SandboxDescription,
  SandboxError,
  type TestOutcome,
  withoutEvidence,
} from "./sandbox.ts";
import { selfTest } from "./selftest.ts";
import { type Slot, SlotLost } from "./slot.ts";

export type { JailLevel } from "./levels.ts";

export interface JailOptions {
  /** Interpreter or virtual environment (its folder or its bin/python). Default: the first `python3` on PATH. */
  python?: string | undefined;
  /** Programs that run at the same moment. Default: one per core. */
  slots?: number | undefined;
  /** Levels to try, strongest first. Default: both. */
  levels?: readonly JailLevel[];
  /** Programs in TypeScript have to type-check. */
  typecheck?: boolean;
  /** Path of bubblewrap. Default: `bwrap` on PATH. */
  bwrap?: string;
  /** Time a process of the jail gets to answer, beyond a program's own limits, before it is killed and replaced. Default 20 s. */
  patienceMs?: number;
}

/** A slot that is lost under a program is replaced this often; one that does not answer, which takes longer to find out, less often. */
const retries = 3;
const retriesOfSilence = 1;
const pauseMs = 100;

export interface Jail extends Sandbox {
  /** Runs one program once. Rejects with SandboxError when the jail failed or a path is refused, never because of the program. */
  execute(request: ExecuteRequest, options?: { signal?: AbortSignal }): Promise<ExecuteResult>;
}

/** Starts the strongest level that passes its self-test; rejects with sandbox/unavailable when none does. */
export async function openJail(options: JailOptions = {}): Promise<Jail> {
  if (process.platform !== "linux") {
    throw new SandboxError(
      "sandbox/unavailable",
      `The embedded jail needs Linux; this is ${process.platform}. Use WSL2 or a Linux container, or set SANDBOX_URL to a Sandbox Fusion server.`,
    );
  }
  const interpreter = await findInterpreter(options.python);
  const failures: string[] = [];
  for (const level of options.levels ?? (["jail", "landlock"] as const)) {
    let jail: EmbeddedJail | undefined;
    try {
      jail = await EmbeddedJail.open(level, interpreter, options);
      await jail.warm();
      await selfTest(jail, level, jail.controlSocket);
      return jail;
    } catch (error) {
      await jail?.close();
      failures.push(`${level}: ${messageOf(error instanceof SandboxError && error.cause ? error.cause : error)}`);
    }
  }
  throw new SandboxError("sandbox/unavailable", whyUnavailable(failures));
}

/** Files of the jail's own. The second level can do without, where it may not mount, and says so. */
async function holdFiles(
  level: JailLevel,
  folder: string,
  make: (parts: HolderParts) => HeldCommand,
): Promise<HeldFiles | undefined> {
  if (level === "landlock" && process.geteuid?.() !== 0) return undefined;
  const files = new HeldFiles(folder, { packages: false, tools: [] }, make);
  try {
    await files.ready();
    return files;
  } catch (error) {
    await files.close();
    if (level === "jail") throw error;
    return undefined;
  }
}

/** What an embedded jail is made of. */
interface JailParts extends PoolParts {
  level: JailLevel;
  interpreter: Interpreter;
  typecheck: boolean;
}

/** Whole numbers, as the kernel takes them, and the bound on a program's processes together. */
function slotLimits(limits: Limits): SlotLimits {
  const whole = (value: number) => Math.max(0, Math.ceil(value));
  const all = Object.entries({ ...limits, treeBytes: limits.memoryBytes }).map(([name, value]) => [name, whole(value)]);
  return Object.fromEntries(all) as SlotLimits;
}

class EmbeddedJail implements Jail {
  description: SandboxDescription;
  readonly #parts: JailParts;
  readonly #limiter: Limiter;
  readonly #pools: Pools;
  readonly #programs: Programs;
  #closed = false;

  private constructor(parts: JailParts) {
    this.#parts = parts;
    this.description = this.#describe(false);
    this.#limiter = new Limiter(parts.slots);
    this.#pools = new Pools(parts);
    const compile = (files: readonly Held[], program: Program, request: ExecuteRequest) =>
      this.#execute({ ...program, files }, [], request); // whoever asks has a place already
    this.#programs = new Programs(compile, parts.level === "jail" ? placeOf : pathOf, parts.typecheck);
  }

  #describe(cgroups: boolean): SandboxDescription {
    const { level, interpreter, slots, plan } = this.#parts;
    return describeLevel(level, interpreter, slots, { cgroups, files: plan.files !== undefined });
  }

  static async open(level: JailLevel, interpreter: Interpreter, options: JailOptions): Promise<EmbeddedJail> {
    const bwrap = findOnPath(options.bwrap ?? "bwrap");
    if (level === "jail" && !bwrap) throw new Error(`${options.bwrap ?? "bwrap"} (bubblewrap) is not installed`);
    const user = unprivilegedUser();
    const slots = Math.max(1, options.slots ?? availableParallelism());
    const control = await ControlServer.open(user === null ? undefined : level === "jail" ? user : null);
    const cgroups = Cgroups.open();
    try {
      const parts = { interpreter, controlFolder: control.folder, socketName: control.socketName };
      const { argv, socketInside } = confinedCommand(parts);
      const make = (holder: HolderParts) =>
        level === "jail" ? jailCommand(bwrap!, parts, holder) : heldCommand(parts, holder);
      const files = await holdFiles(level, control.folder, make);
      const confined = { readable: confinedReadable(interpreter), scratch: control.scratchFolder, ...slotUsers() };
      const slow = languages.python.packages!.slow;
      const config = { level, slow, preload: [], ...(level === "jail" ? {} : confined) };
      const plan = { files, argv, socketInside: files?.command.socketInside ?? socketInside, config, cgroups, slots };
      const hold = (content: HeldContent) => files && new HeldFiles(control.folder, content, make);
      const patienceMs = options.patienceMs ?? 20_000;
      // Without namespaces, what may be executed is named.
      const executesAnywhere = level === "jail";
      const { typecheck = false } = options;
      const all = { level, interpreter, control, plan, hold, executesAnywhere, slots, patienceMs, typecheck };
      return new EmbeddedJail(all);
    } catch (error) {
      await cgroups?.close();
      await control.close();
      throw error;
    }
  }

  get controlSocket(): string {
    const { folder, socketName } = this.#parts.control;
    return join(folder, socketName);
  }

  /** Starts the zygotes; rejects when one does not start or the kernel lacks what the level needs. */
  async warm(): Promise<void> {
    const facts = await this.#pools.warm();
    if (this.description.kind === "landlock" && facts.landlock === 0) {
      throw new Error("Landlock is not available: the kernel is older than 5.13, or it is switched off");
    }
    this.description = this.#describe(facts.cgroups > 0);
  }

  /**
   * Calls `work` with a slot, and again with another one while slots are lost under it. When they are lost again and again, a program that
   * does nothing tells why: if that one runs, the loss follows the program, which then has `lost` for its result.
   */
  async #withSlot<Result>(
    program: Program,
    texts: readonly string[],
    work: (slot: Slot) => Promise<Result>,
    lost: () => Result,
  ): Promise<Result> {
    let losses = 0;
    let silences = 0;
    while (true) {
      let pool = this.#pools.plain;
      let slot: Slot | undefined;
      try {
        pool = await this.#pools.poolFor(program, texts);
        slot = await pool.acquire();
        const result = await work(slot);
        pool.succeeded();
        return result;
      } catch (error) {
        if (!(error instanceof SlotLost)) throw error;
        losses++;
        if (slot?.wedged) {
          silences++;
          await pool.suspect(slot);
        }
        const enough = losses > retries || silences > retriesOfSilence;
        if (enough && slot && !this.#closed && (await this.#works(pool))) return lost();
        if (this.#closed || enough) {
          throw new SandboxError(
            "sandbox/lost",
            `The embedded jail lost a program ${losses} times (${error.message}). It is not a verdict on the program; grade it again. ` +
              `If it goes on, look at memory and process limits of this machine.`,
            { cause: error },
          );
        }
        // A dead zygote takes its ready slots along; a moment later they are known to be gone.
        await sleep(pauseMs * losses);
      } finally {
        slot?.close();
      }
    }
  }

  /** Whether a program that does nothing runs. */
  async #works(pool: Pool): Promise<boolean> {
    let slot: Slot | undefined;
    try {
      slot = await pool.acquire();
      const limits = slotLimits(defaultLimits);
      const tests = [{ kind: "stdin", stdin: "" }] as const;
      sendJob(slot, pythonProgram("", "empty.py"), { tests, preamble: false }, limits);
      let status: TestOutcome["status"] | undefined;
      await runTests(slot, tests, limits, { patienceMs: this.#parts.patienceMs }, (outcome) => {
        ({ status } = outcome);
        return "stop";
      });
      return status === "finished";
    } catch (error) {
      if (error instanceof SlotLost) return false;
      throw error;
    } finally {
      slot?.close();
    }
  }

  run(
    job: Job,
    afterTest: (outcome: TestOutcome, index: number) => "continue" | "stop",
    options: { signal?: AbortSignal } = {},
  ): Promise<TestOutcome[]> {
    const outcomes: TestOutcome[] = [];
    const limits = slotLimits(job.limits);
    const waiting = { ...options, patienceMs: this.#parts.patienceMs };
    const done = (outcome: TestOutcome) => {
      outcomes.push(outcome);
      return afterTest(outcome, outcomes.length - 1);
    };
    const work = async () => {
      const { language, source, tests } = job;
      const wanted = { language, source, calls: callsOf(tests), memoryBytes: limits.memoryBytes };
      const program = await this.#programs.ready(wanted).catch(orProgramError);
      if (program instanceof ProgramError) {
        while (outcomes.length < tests.length && done(notMade(program)) === "continue");
        return outcomes;
      }
      options.signal?.throwIfAborted();
      const signs = languageOf(language).runtime?.signs;
      const inSlot = async (slot: Slot) => {
        sendJob(slot, program, job, limits);
        // A lost slot takes only its current test with it: the ones before keep their outcomes.
        await runTests(slot, tests.slice(outcomes.length), limits, waiting, (outcome) =>
          done(signs ? named(outcome, program.inSource, signs) : outcome),
        );
        return outcomes;
      };
      const lost = () => {
        done(withoutEvidence());
        return outcomes;
      };
      return this.#withSlot(program, [source], inSlot, lost);
    };
    if (job.tests.length === 0) return Promise.resolve(outcomes);
    return this.#limiter.run(work, options);
  }

  async execute(request: ExecuteRequest, options: { signal?: AbortSignal } = {}): Promise<ExecuteResult> {
    const limits = slotLimits(request.limits);
    checkFiles(request);
    // A program may lie in a file, and be imported or started by what runs.
    const programs = [...request.files.values()].filter((bytes) => bytes.length <= maxSourceBytes);
    const texts = [request.code, ...programs.map((bytes) => Buffer.from(bytes).toString("latin1"))];
    const { language, code: source } = request;
    return this.#limiter.run(async () => {
      const wanted = { language, source, calls: [], memoryBytes: limits.memoryBytes };
      const program = await this.#programs.ready(wanted).catch(orProgramError);
      if (program instanceof ProgramError) return emptyResult({ exitCode: 1, notCompiled: program.message });
      options.signal?.throwIfAborted();
      if (program.command === null) program.name = freeName(program.name, request.files);
      return this.#execute(program, texts, request, options);
    }, options);
  }

  #execute(
    program: Program,
    texts: readonly string[],
    request: ExecuteRequest,
    options: { signal?: AbortSignal } = {},
  ): Promise<ExecuteResult> {
    const limits = slotLimits(request.limits);
    const waiting = { ...options, patienceMs: this.#parts.patienceMs };
    const work = (slot: Slot) => runOnce(slot, program, request, limits, waiting);
    // The result of a program that takes its supervisor with it every time.
    const lost = () => emptyResult({ signal: 9 });
    return this.#withSlot(program, texts, work, lost);
  }

  async supports(language: LanguageName): Promise<void> {
    if (!languageOf(language).runtime) return;
    await requiredTools(language);
    await proveLanguage(this, language);
  }

  async close(): Promise<void> {
    const { plan, control } = this.#parts;
    this.#closed = true;
    await this.#pools.close();
    await plan.cgroups?.close();
    await control.close();
  }
}
