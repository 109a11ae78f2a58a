// An environment of the verifiers package, in a Python process of its own: `play_verifiers.py` has it, and plays rollouts side by side. A process
// that died is started again by the next rollout; what was under way in it counts as an outage.
import { once } from "node:events";
import { delimiter, dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { ConfigError } from "../core/errors.ts";
import { visible } from "../core/visible.ts";
import { capture, startGuarded } from "./guarded.ts";

/** Which environment. */
export interface VerifiersSource {
  /** The interpreter that has it. */
  python: string;
  /** A module's name, or a class of verifiers itself. */
  name: string;
  /** A folder that modules are found in too; "" for none. */
  place: string;
  args: Readonly<Record<string, unknown>>;
}

export interface VerifiersProblem {
  id: string;
  row: number;
  prompt: { role: "system" | "user" | "assistant"; content: string }[];
}

/** What the environment says of itself. */
export interface VerifiersFacts {
  version: string;
  /** Changes with the version, the arguments and the environment's own source. */
  fingerprint: string;
  /** Not above 0: without a bound. */
  maxTurns: number | null;
  problems: VerifiersProblem[];
  testProblems: VerifiersProblem[];
}

export interface Rollout {
  split: "train" | "test";
  row: number;
  endpoint: { baseURL: string; apiKey: string; model: string };
}

/** Numbers that JSON has not come as text. */
export interface RolledOut {
  reward: number | string | null;
  metrics: Record<string, number | string>;
  stop: string | null;
}

type Answer = RolledOut & { id: number; error?: string };

const script = fileURLToPath(new URL("./play_verifiers.py", import.meta.url));
const maxErrorCharacters = 8192;
/** How long a rollout may take to end when it is cancelled. */
const closeMs = 5000;

/** The process is gone, which says nothing of a rollout. */
export class VerifiersGone extends Error {}

export class VerifiersEnvironment {
  readonly #source: VerifiersSource;
  #process: Promise<VerifiersProcess>;
  #isClosed = false;

  private constructor(source: VerifiersSource, first: VerifiersProcess) {
    this.#source = source;
    this.#process = Promise.resolve(first);
  }

  /** Rejects with what is wrong with the environment. */
  static async open(source: VerifiersSource): Promise<{ environment: VerifiersEnvironment; facts: VerifiersFacts }> {
    const first = await VerifiersProcess.start(source);
    return { environment: new VerifiersEnvironment(source, first), facts: first.facts };
  }

  /** Plays one. Rejects with the signal's reason, with VerifiersGone, or with what the environment says is wrong. */
  async play(rollout: Rollout, signal: AbortSignal): Promise<RolledOut> {
    let process = await this.#process;
    if (process.isGone && !this.#isClosed) {
      // Whoever comes second waits for the same new one.
      const gone = process;
      this.#process = this.#process.then((now) => (now === gone ? this.#again(gone) : now));
      process = await this.#process;
    }
    signal.throwIfAborted();
    return process.play(rollout, signal);
  }

  async #again(gone: VerifiersProcess): Promise<VerifiersProcess> {
    try {
      const next = await VerifiersProcess.start(this.#source);
      if (next.facts.fingerprint === gone.facts.fingerprint) return next;
      next.kill();
      throw new Error(`${this.#source.name} was changed while it was in use. Stop the run, and start it again`);
    } catch (error) {
      // The next rollout tries again.
      return gone.because(error);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    (await this.#process).kill();
  }
}

class VerifiersProcess {
  readonly #guarded: ReturnType<typeof startGuarded>;
  readonly #errors: { text: string };
  readonly #waiting = new Map<number, (answer: Answer | Error) => void>();
  readonly #name: string;
  #facts: VerifiersFacts | undefined;
  #why: unknown;
  #next = 0;
  isGone = false;

  static async start(source: VerifiersSource): Promise<VerifiersProcess> {
    const started = new VerifiersProcess(source);
    await started.#read(source);
    return started;
  }

  private constructor({ python, name }: VerifiersSource) {
    // What the environment starts, such as uv, is found beside its interpreter.
    const env = { ...process.env, PATH: `${dirname(python)}${delimiter}${process.env["PATH"]}` };
    this.#name = name;
    this.#guarded = startGuarded([python, script], { cwd: process.cwd(), env });
    const { child } = this.#guarded;
    this.#errors = capture(child.stderr, "end", maxErrorCharacters);
    child.once("error", () => {});
    child.once("close", () => {
      this.isGone = true;
      for (const settle of this.#waiting.values()) settle(this.#gone());
    });
  }

  async #read({ name, place, args }: VerifiersSource): Promise<void> {
    const { child } = this.#guarded;
    const lines = createInterface({ input: child.stdout });
    child.stdin.write(`${JSON.stringify({ name, place, args })}\n`);
    const closed = once(child, "close").then(() => []);
    const [first] = (await Promise.race([once(lines, "line"), closed])) as string[];
    const facts = first === undefined ? { error: this.#gone().message } : JSON.parse(first);
    if (facts.error !== undefined) {
      this.kill();
      throw new ConfigError("config/verifiers", facts.error);
    }
    this.#facts = facts;
    lines.on("line", (line) => {
      const answer = JSON.parse(line) as Answer;
      this.#waiting.get(answer.id)?.(answer);
    });
  }

  get facts(): VerifiersFacts {
    return this.#facts!;
  }

  play(rollout: Rollout, signal: AbortSignal): Promise<RolledOut> {
    return new Promise((resolve, reject) => {
      if (this.isGone) return reject(this.#gone());
      const id = this.#next++;
      const { stdin } = this.#guarded.child;
      let late: NodeJS.Timeout | undefined;
      const cancel = () => {
        stdin.write(`${JSON.stringify({ cancel: id })}\n`);
        // What does not end holds up all others, too.
        late = setTimeout(() => this.kill(), closeMs);
      };
      this.#waiting.set(id, (answer) => {
        this.#waiting.delete(id);
        clearTimeout(late);
        signal.removeEventListener("abort", cancel);
        if (signal.aborted) reject(signal.reason);
        else if (answer instanceof Error) reject(answer);
        else if (answer.error !== undefined) reject(new Error(answer.error));
        else resolve(answer);
      });
      signal.addEventListener("abort", cancel, { once: true });
      stdin.write(`${JSON.stringify({ id, ...rollout })}\n`);
    });
  }

  /** Says why there is no other in its place. */
  because(error: unknown): this {
    this.#why = error;
    return this;
  }

  kill(): void {
    this.isGone = true;
    this.#guarded.kill();
  }

  #gone(): VerifiersGone {
    if (this.#why instanceof Error) return new VerifiersGone(this.#why.message);
    const { exitCode, signalCode } = this.#guarded.child;
    const said = visible(this.#errors.text.trim()).slice(-500);
    const how =
      exitCode === null
        ? `was killed (${signalCode ?? "it did not end when it was told to"})`
        : `ended with exit code ${exitCode}`;
    return new VerifiersGone(`the Python process of ${this.#name} ${how}${said === "" ? "" : `: ${said}`}`);
  }
}
