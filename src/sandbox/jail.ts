// The embedded jail: runs Python programs on this machine behind the strongest isolation that proves itself at start.
// `run` is the judge's side (many tests, one program); `execute` runs one program once, as a plain script with files.
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../core/errors.ts";
import type { Language } from "../core/languages/language.ts";
import { languageOf, languages } from "../core/languages/languages.ts";
import { Limiter } from "../core/limiter.ts";
import { Cgroups } from "./cgroups.ts";
import { ControlServer } from "./control.ts";
import { runOnce, runTests, type SlotLimits, sendJob } from "./conversation.ts";
import { checkFiles, type ExecuteRequest, type ExecuteResult, emptyResult } from "./execute.ts";
import { HeldFiles } from "./files.ts";
import { findInterpreter, findOnPath, type Interpreter } from "./interpreter.ts";
import { describeLevel, type JailLevel, whyUnavailable } from "./levels.ts";
import {
  confinedCommand,
  confinedReadable,
  type HeldCommand,
  type HolderParts,
  heldCommand,
  jailCommand,
  slotUsers,
  unprivilegedUser,
} from "./outer.ts";
import { Pool } from "./pool.ts";
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
import type { ZygotePlan } from "./zygote.ts";

export type { JailLevel } from "./levels.ts";

export interface JailOptions {
  /** Interpreter or virtual environment (its folder or its bin/python). Default: the first `python3` on PATH. */
  python?: string;
  /** Programs that run at the same moment. Default: one per core. */
  slots?: number;
  /** Levels to try, strongest first. Default: both. */
  levels?: readonly JailLevel[];
  /** Path of bubblewrap. Default: `bwrap` on PATH. */
  bwrap?: string;
  /** Time a process of the jail gets to answer, beyond a program's own limits, before it is killed and replaced. Default 20 s. */
  patienceMs?: number;
}

/** A slot that is lost under a program is replaced this often; one that does not answer, which takes longer to find out, less often. */
const retries = 3;
const retriesOfSilence = 1;
const pauseMs = 100;
const maxPools = 4;
/** Control groups per zygote; each takes three descriptors. */
const maxCgroups = 100;

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
  const files = new HeldFiles(folder, false, make);
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
interface JailParts {
  level: JailLevel;
  interpreter: Interpreter;
  control: ControlServer;
  plan: ZygotePlan;
  /** With the packages that are installed; made with the first program that mentions one. */
  withPackages: HeldFiles | undefined;
  slots: number;
  patienceMs: number;
}

class EmbeddedJail implements Jail {
  description: SandboxDescription;
  readonly #parts: JailParts;
  readonly #limiter: Limiter;
  readonly #plain: Pool;
  /** Programs that mention packages that take long to import start where those are imported; a pool comes with the first of them. */
  readonly #warm = new Map<string, Pool>();
  #closed = false;

  private constructor(parts: JailParts) {
    this.#parts = parts;
    this.description = this.#describe(false);
    this.#limiter = new Limiter(parts.slots);
    this.#plain = this.#pool([]);
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
      const slow = Object.values(languages).flatMap(({ slowModules }) => slowModules);
      const config = { level, slow, preload: [], ...(level === "jail" ? {} : confined) };
      const plan = { files, argv, socketInside: files?.command.socketInside ?? socketInside, config, cgroups, slots };
      const withPackages = files && new HeldFiles(control.folder, true, make);
      const patienceMs = options.patienceMs ?? 20_000;
      return new EmbeddedJail({ level, interpreter, control, plan, withPackages, slots, patienceMs });
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

  #pool(preload: readonly string[], files = this.#parts.plan.files): Pool {
    const { slots, plan, control, patienceMs } = this.#parts;
    const zygotes = Math.min(slots, availableParallelism());
    const spare = Math.ceil(slots / zygotes) + 1;
    // Running ones, ready ones, and some that have ended and are not known to have.
    const atOnce = Math.min(slots + 2 * spare + 2, maxCgroups);
    const ownPlan = { ...plan, files, slots: atOnce, config: { ...plan.config, preload } };
    return new Pool(ownPlan, control, zygotes, spare, patienceMs);
  }

  /** Starts the zygotes; rejects when one does not start or the kernel lacks what the level needs. */
  async warm(): Promise<void> {
    const facts = await this.#plain.warm();
    if (this.description.kind === "landlock" && facts.landlock === 0) {
      throw new Error("Landlock is not available: the kernel is older than 5.13, or it is switched off");
    }
    this.description = this.#describe(facts.cgroups > 0);
  }

  /** Programs start beside the packages that they mention. */
  async #poolFor({ importedWords, slowModules }: Language, texts: readonly string[]): Promise<Pool> {
    const { plan, withPackages } = this.#parts;
    const installed = (await plan.files?.ready())?.packages ?? this.#plain.facts?.slowPackages ?? [];
    if (installed.length === 0) return this.#plain;
    const words = new Set(texts.flatMap((text) => [...importedWords(text)]));
    const used = installed.filter((name) => words.has(name));
    const slow = used.filter((name) => slowModules.includes(name));
    if (used.length === 0 || (slow.length === 0 && !withPackages)) return this.#plain;
    const key = slow.join();
    const known = this.#warm.get(key);
    if (known) return known;
    // Every pool holds processes; past a few, numpy alone has to do, or nothing that is imported ahead.
    if (this.#warm.size >= maxPools) {
      const other = this.#warm.get("numpy") ?? this.#warm.get("") ?? this.#warm.values().next().value;
      return other!;
    }
    await withPackages?.ready(); // takes its time, which is not a slot's
    const pool = this.#warm.get(key) ?? this.#pool(slow, withPackages);
    this.#warm.set(key, pool);
    return pool;
  }

  /** Whole numbers, as the kernel takes them, and the bound on a program's processes together. */
  #limits(limits: Limits): SlotLimits {
    const all = Object.entries({ ...limits, treeBytes: limits.memoryBytes }).map(([name, value]) => [
      name,
      Math.max(0, Math.ceil(value)),
    ]);
    return Object.fromEntries(all) as SlotLimits;
  }

  /**
   * Calls `work` with a slot, and again with another one while slots are lost under it. When they are lost again and again, a program that
   * does nothing tells why: if that one runs, the loss follows the program, which then has `lost` for its result.
   */
  async #withSlot<Result>(
    language: Language,
    texts: readonly string[],
    work: (slot: Slot) => Promise<Result>,
    lost: () => Result,
  ): Promise<Result> {
    let losses = 0;
    let silences = 0;
    while (true) {
      let pool = this.#plain;
      let slot: Slot | undefined;
      try {
        pool = await this.#poolFor(language, texts);
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
      const limits = this.#limits(defaultLimits);
      const tests = [{ kind: "stdin", stdin: "" }] as const;
      sendJob(slot, { source: "", tests, limits, preamble: false }, limits);
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
    const limits = this.#limits(job.limits);
    const waiting = { ...options, patienceMs: this.#parts.patienceMs };
    const work = async (slot: Slot) => {
      sendJob(slot, job, limits);
      // A lost slot takes only its current test with it: the ones before keep their outcomes.
      await runTests(slot, job.tests.slice(outcomes.length), limits, waiting, (outcome) => {
        outcomes.push(outcome);
        return afterTest(outcome, outcomes.length - 1);
      });
      return outcomes;
    };
    const lost = () => {
      outcomes.push(withoutEvidence());
      afterTest(outcomes.at(-1)!, outcomes.length - 1);
      return outcomes;
    };
    if (job.tests.length === 0) return Promise.resolve(outcomes);
    return this.#limiter.run(() => this.#withSlot(languageOf(job.language), [job.source], work, lost), options);
  }

  async execute(request: ExecuteRequest, options: { signal?: AbortSignal } = {}): Promise<ExecuteResult> {
    const limits = this.#limits(request.limits);
    checkFiles(request);
    const waiting = { ...options, patienceMs: this.#parts.patienceMs };
    const work = (slot: Slot) => runOnce(slot, request, limits, waiting);
    // A program may lie in a file, and be imported or started by what runs.
    const programs = [...request.files.values()].filter((bytes) => bytes.length <= maxSourceBytes);
    const texts = [request.code, ...programs.map((bytes) => Buffer.from(bytes).toString("latin1"))];
    // The result of a program that takes its supervisor with it every time.
    const lost = () => emptyResult({ signal: 9 });
    return this.#limiter.run(() => this.#withSlot(languageOf(request.language), texts, work, lost), options);
  }

  async close(): Promise<void> {
    const { plan, withPackages, control } = this.#parts;
    this.#closed = true;
    await Promise.all([this.#plain, ...this.#warm.values()].map((pool) => pool.close()));
    await Promise.all([plan.files?.close(), withPackages?.close()]);
    await plan.cgroups?.close();
    await control.close();
  }
}
