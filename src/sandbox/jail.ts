// The embedded jail: runs Python programs on this machine behind the strongest isolation that proves itself at start.
// `run` is the judge's side (many tests, one program); `execute` runs one program once, as a plain script with files.
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../core/errors.ts";
import { Limiter } from "../core/limiter.ts";
import { ControlServer } from "./control.ts";
import { runOnce, runTest, type SlotLimits, sendJob, withoutEvidence } from "./conversation.ts";
import { HeldFiles } from "./files.ts";
import { MemoryGroups } from "./groups.ts";
import { mentioned } from "./imports.ts";
import { findInterpreter, findOnPath, type Interpreter } from "./interpreter.ts";
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
import { checkFiles } from "./paths.ts";
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
} from "./sandbox.ts";
import { selfTest } from "./selftest.ts";
import { type Slot, SlotLost } from "./slot.ts";
import type { ZygotePlan } from "./zygote.ts";

/** Isolation levels, strongest first. */
export type JailLevel = "jail" | "landlock";

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
const mostPools = 4;
/** They take long to import, so programs that mention them start where they are imported. */
const slowPackages = new Set(["numpy", "scipy", "pandas", "sympy", "networkx"]);
/** Memory groups per zygote; each takes three descriptors. */
const mostGroups = 100;

export interface ExecuteRequest {
  /** Python source; runs as a script in a fresh working directory. */
  code: string;
  stdin: Uint8Array | string;
  /** Placed below the working directory before the program starts. Relative paths without `..`; otherwise sandbox/bad-path. */
  files: ReadonlyMap<string, Uint8Array>;
  /** Read back afterwards, whatever the outcome; missing ones, folders and symbolic links are left out. */
  fetchFiles: readonly string[];
  limits: Limits;
  /** What the program sees after its own name in sys.argv. */
  argv?: readonly string[];
  /** Most bytes of fetched files, all together; a file that does not fit is left out and counted in `filesLeftOut`. Default 8 MiB. */
  fetchBytes?: number;
}

export interface ExecuteResult {
  /** "finished" says only that the program ended by itself: look at exitCode and signal. */
  status: "finished" | "time-limit" | "memory-limit" | "output-limit";
  exitCode: number | null;
  signal: number | null;
  /** At most limits.outputBytes each, from the start of the stream. */
  stdout: Uint8Array;
  stderr: Uint8Array;
  stdoutTruncated: boolean;
  stderrTruncated: boolean;
  /** The program was killed for its memory, or ended with an uncaught MemoryError. */
  oom: boolean;
  wallMs: number;
  cpuMs: number;
  maxRssBytes: number;
  /** Keys are exactly the requested paths. */
  files: Map<string, Uint8Array>;
  filesLeftOut: string[];
}

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
  throw new SandboxError("sandbox/unavailable", unavailable(failures));
}

function unavailable(failures: readonly string[]): string {
  const noRoom = failures.every((failure) => /\b(ENOSPC|EDQUOT|EROFS|EACCES)\b/.test(failure));
  return [
    "No isolation level of the embedded jail works here, so no program was run.",
    ...failures.map((failure) => `  ${failure}`),
    noRoom
      ? `To fix it: free some space in ${tmpdir()}, or set TMPDIR to a folder where you may write.`
      : "To fix it: install bubblewrap (apt-get install bubblewrap) and allow unprivileged user namespaces " +
        "(Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0; Docker: --security-opt seccomp=unconfined " +
        "--security-opt systempaths=unconfined), or run a kernel with Landlock (5.13 or later), or set SANDBOX_URL to a Sandbox Fusion server.",
  ].join("\n");
}

function description(
  level: JailLevel,
  interpreter: Interpreter,
  slots: number,
  { groups, files }: { groups: boolean; files: boolean },
): SandboxDescription {
  const memory = groups ? ", memory control groups" : "";
  const programs = `${slots} program${slots === 1 ? "" : "s"} at a time, Python ${interpreter.version}`;
  if (level === "jail") {
    const summary = `embedded jail: bubblewrap, namespaces per program, seccomp${memory}; ${programs}`;
    return { kind: "jail", summary, lacks: [], python: interpreter.executable, programsAtOnce: slots };
  }
  const lacks = [
    "programs cannot start processes (subprocess, fork, multiprocessing fail)",
    "scratch space is watched, not bounded by a file system",
    ...(files
      ? []
      : [
          "the existence and attributes of files outside can be seen, not their content",
          "names looked up in vain stay in the host's memory, where other programs find them",
        ]),
    "no /proc; changes of file modes and times report success and do nothing",
    "numbers of threads, processes and files are the host's: they tell of others",
  ];
  if (process.geteuid?.() !== 0) lacks.push("all programs run as the calling user");
  const summary = `embedded jail, second level: Landlock, seccomp without processes and sockets${memory}; ${programs}`;
  return { kind: "landlock", summary, lacks, python: interpreter.executable, programsAtOnce: slots };
}

/** The result of a program that takes its supervisor with it every time. */
function killed(): ExecuteResult {
  return {
    status: "finished",
    exitCode: null,
    signal: 9,
    stdout: new Uint8Array(),
    stderr: new Uint8Array(),
    stdoutTruncated: false,
    stderrTruncated: false,
    oom: false,
    wallMs: 0,
    cpuMs: 0,
    maxRssBytes: 0,
    files: new Map(),
    filesLeftOut: [],
  };
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

class EmbeddedJail implements Jail {
  description: SandboxDescription;
  readonly #control: ControlServer;
  readonly #plan: ZygotePlan;
  readonly #describe: (groups: boolean) => SandboxDescription;
  /** With the packages that are installed; made with the first program that mentions one. */
  readonly #withPackages: HeldFiles | undefined;
  readonly #slots: number;
  readonly #patienceMs: number;
  readonly #limiter: Limiter;
  readonly #plain: Pool;
  /** Programs that mention packages that take long to import start where those are imported; a pool comes with the first of them. */
  readonly #warm = new Map<string, Pool>();
  #closed = false;

  private constructor(
    level: JailLevel,
    interpreter: Interpreter,
    control: ControlServer,
    plan: ZygotePlan,
    withPackages: HeldFiles | undefined,
    slots: number,
    patienceMs: number,
  ) {
    this.#describe = (groups) => description(level, interpreter, slots, { groups, files: plan.files !== undefined });
    this.#withPackages = withPackages;
    this.description = this.#describe(false);
    this.#control = control;
    this.#plan = plan;
    this.#slots = slots;
    this.#patienceMs = patienceMs;
    this.#limiter = new Limiter(slots);
    this.#plain = this.#pool([]);
  }

  static async open(level: JailLevel, interpreter: Interpreter, options: JailOptions): Promise<EmbeddedJail> {
    const bwrap = findOnPath(options.bwrap ?? "bwrap");
    if (level === "jail" && !bwrap) throw new Error(`${options.bwrap ?? "bwrap"} (bubblewrap) is not installed`);
    const user = unprivilegedUser();
    const slots = Math.max(1, options.slots ?? availableParallelism());
    const control = await ControlServer.open(user === null ? undefined : level === "jail" ? user : null);
    const groups = MemoryGroups.open();
    try {
      const parts = { interpreter, controlFolder: control.folder, socketName: control.socketName };
      const { argv, socketInside } = confinedCommand(parts);
      const make = (holder: HolderParts) =>
        level === "jail" ? jailCommand(bwrap!, parts, holder) : heldCommand(parts, holder);
      const files = await holdFiles(level, control.folder, make);
      const confined = { readable: confinedReadable(interpreter), scratch: control.scratchFolder, ...slotUsers() };
      const config = { level, preload: [], ...(level === "jail" ? {} : confined) };
      const plan = { files, argv, socketInside: files?.command.socketInside ?? socketInside, config, groups, slots };
      const withPackages = files && new HeldFiles(control.folder, true, make);
      return new EmbeddedJail(level, interpreter, control, plan, withPackages, slots, options.patienceMs ?? 20_000);
    } catch (error) {
      await groups?.close();
      await control.close();
      throw error;
    }
  }

  get controlSocket(): string {
    return join(this.#control.folder, this.#control.socketName);
  }

  #pool(preload: readonly string[], files = this.#plan.files): Pool {
    const zygotes = Math.min(this.#slots, availableParallelism());
    const spare = Math.ceil(this.#slots / zygotes) + 1;
    // Running ones, ready ones, and some that have ended and are not known to have.
    const slots = Math.min(this.#slots + 2 * spare + 2, mostGroups);
    const plan = { ...this.#plan, files, slots, config: { ...this.#plan.config, preload } };
    return new Pool(plan, this.#control, zygotes, spare, this.#patienceMs);
  }

  /** Starts the zygotes; rejects when one does not start or the kernel lacks what the level needs. */
  async warm(): Promise<void> {
    const facts = await this.#plain.warm();
    if (this.description.kind === "landlock" && facts.landlock === 0) {
      throw new Error("Landlock is not available: the kernel is older than 5.13, or it is switched off");
    }
    this.description = this.#describe(facts.memoryGroups > 0);
  }

  async #poolFor(texts: readonly string[]): Promise<Pool> {
    const there = (await this.#plan.files?.ready())?.packages ?? this.#plain.facts?.slowPackages ?? [];
    const used = mentioned(there, texts);
    if (used.length === 0) return this.#plain;
    const slow = used.filter((name) => slowPackages.has(name));
    if (slow.length === 0 && !this.#withPackages) return this.#plain;
    const key = slow.join();
    const known = this.#warm.get(key);
    if (known) return known;
    // Every pool holds processes; past a few, numpy alone has to do, or nothing that is imported ahead.
    if (this.#warm.size >= mostPools) {
      const other = this.#warm.get("numpy") ?? this.#warm.get("") ?? this.#warm.values().next().value;
      return other!;
    }
    await this.#withPackages?.ready(); // takes its time, which is not a slot's
    const pool = this.#warm.get(key) ?? this.#pool(slow, this.#withPackages);
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
        pool = await this.#poolFor(texts);
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
      const outcome = await runTest(slot, tests[0], limits, { patienceMs: this.#patienceMs });
      return outcome.status === "finished";
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
    const waiting = { ...options, patienceMs: this.#patienceMs };
    const work = async (slot: Slot) => {
      sendJob(slot, job, limits);
      // A lost slot takes only its current test with it: the ones before keep their outcomes.
      while (outcomes.length < job.tests.length) {
        const outcome = await runTest(slot, job.tests[outcomes.length]!, limits, waiting);
        outcomes.push(outcome);
        if (afterTest(outcome, outcomes.length - 1) === "stop") break;
      }
      return outcomes;
    };
    const lost = () => {
      outcomes.push(withoutEvidence());
      afterTest(outcomes.at(-1)!, outcomes.length - 1);
      return outcomes;
    };
    if (job.tests.length === 0) return Promise.resolve(outcomes);
    return this.#limiter.run(() => this.#withSlot([job.source], work, lost), options);
  }

  async execute(request: ExecuteRequest, options: { signal?: AbortSignal } = {}): Promise<ExecuteResult> {
    const limits = this.#limits(request.limits);
    checkFiles(request, limits);
    const waiting = { ...options, patienceMs: this.#patienceMs };
    const work = (slot: Slot) => runOnce(slot, request, limits, waiting);
    // A program may lie in a file, and be imported or started by what runs.
    const programs = [...request.files.values()].filter((bytes) => bytes.length <= maxSourceBytes);
    const texts = [request.code, ...programs.map((bytes) => Buffer.from(bytes).toString("latin1"))];
    return this.#limiter.run(() => this.#withSlot(texts, work, killed), options);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#plain, ...this.#warm.values()].map((pool) => pool.close()));
    await Promise.all([this.#plan.files?.close(), this.#withPackages?.close()]);
    await this.#plan.groups?.close();
    await this.#control.close();
  }
}
