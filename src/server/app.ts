// Everything between the HTTP surface and the engine, opened over a state folder. A restart closes one App and opens another over the
// same folder.
import { setMaxListeners } from "node:events";
import { Recent } from "../core/recent.ts";
import type { Engine, EngineModelInfo } from "../engine/engine.ts";
import { CheckpointStore } from "./checkpoints.ts";
import { CompletionLog } from "./completions.ts";
import { Decoder } from "./decoder.ts";
import { badRequest } from "./errors.ts";
import { Operations } from "./operations.ts";
import { Registry } from "./registry.ts";
import { Samplers } from "./samplers.ts";
import type { ClientFlag } from "./session-routes.ts";
import { SessionWatch } from "./session-watch.ts";
import type { ModelText } from "./stop.ts";
import { within } from "./time-limit.ts";
import { Training } from "./training.ts";

export interface AppSettings {
  stateDir: string;
  /** How long a poll is held before the answer is "try again". */
  pollHoldMs: number;
  /** How long a missing sequence number holds a model up. */
  gapLimitMs: number;
  maxBodyBytes: number;
  /** Operations accepted and not finished. */
  maxQueue: number;
  /** Bytes of request bodies that those hold. */
  maxQueueBytes: number;
  /** Settled results held at once; the oldest delivered ones go first, then the oldest of all. */
  maxResultBytes: number;
  /** Results at least this large are announced by size first, to clients that ask for it. */
  announceBytes: number;
  /** Samplers open in the engine at once; the least recently used idle one makes room. */
  maxSamplers: number;
  /** Models that the engine holds at once. */
  maxModels: number;
  /** A session silent for this long ends, and its models are freed. */
  sessionTimeoutMs: number;
  /** Flags of the client configuration that are on. */
  clientFlags: readonly ClientFlag[];
  /** How a model's tokens are text, for stop strings; undefined where it has no tokenizer. */
  text?: ((baseModel: string) => ModelText | undefined) | undefined;
  /** Called when the engine is gone for good: nothing will work until the process is started again. */
  onEngineLost?: ((error: Error) => void) | undefined;
  log: (line: string) => void;
}

export const defaultSettings: Omit<AppSettings, "stateDir" | "log"> = {
  pollHoldMs: 30_000,
  gapLimitMs: 30_000,
  maxBodyBytes: 64 << 20,
  maxQueue: 4096,
  maxQueueBytes: 1 << 30,
  maxResultBytes: 512 << 20,
  announceBytes: 8 << 20,
  maxSamplers: 64,
  maxModels: 256,
  sessionTimeoutMs: 15 * 60_000,
  clientFlags: [],
};

const sweepIntervalMs = 15_000;

export class App {
  readonly settings: AppSettings;
  readonly engine: Engine;
  readonly registry: Registry;
  readonly checkpoints: CheckpointStore;
  readonly operations: Operations;
  readonly samplers: Samplers;
  readonly training: Training;
  readonly sessions: SessionWatch;
  readonly completions = new CompletionLog();
  /** Copies of checkpoints, as the runs that have them, by the key of the request that asked. */
  readonly copies = new Recent<string, Promise<string>>(4096);
  readonly decoder = new Decoder();
  readonly #ended = new AbortController();
  readonly #sweeper: NodeJS.Timeout;

  constructor(engine: Engine, settings: AppSettings) {
    // Every held poll and every sample under way listens to it.
    setMaxListeners(0, this.#ended.signal);
    this.settings = settings;
    this.engine = engine;
    this.registry = new Registry(settings.stateDir);
    this.checkpoints = new CheckpointStore(settings.stateDir);
    this.operations = new Operations(settings);
    this.samplers = new Samplers(this);
    this.training = new Training(this);
    this.sessions = new SessionWatch(settings.sessionTimeoutMs);
    this.#sweeper = setInterval(() => void this.sweep(), sweepIntervalMs);
    this.#sweeper.unref();
  }

  /** What the engine says about a base model; 400 when it has none of that name. */
  modelInfo(baseModel: string): EngineModelInfo {
    const { models } = this.engine;
    const info = models.find(({ name }) => name === baseModel);
    if (info) return info;
    throw badRequest(
      "server/unknown-base-model",
      `This server does not serve "${baseModel.slice(0, 100)}". It serves ${models.map(({ name }) => name).join(", ")}.`,
    );
  }

  /** Fires when this App is closed: held polls end. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Takes no more work, waits for what was accepted (at most `drainMs`), then lets go of everything. */
  async close(drainMs: number): Promise<void> {
    this.operations.close();
    if (drainMs > 0) {
      this.training.drain();
      await within(drainMs, this.operations.futures.idle());
    }
    this.training.close();
    clearInterval(this.#sweeper);
    this.#ended.abort();
    this.registry.close();
    await this.decoder.close();
    await this.engine.close();
  }

  /** Frees the models and samplers of a session. */
  async endSession(sessionId: string): Promise<void> {
    for (const model of this.registry.models)
      if (model.sessionId === sessionId && model.state === "live") await this.training.drop(model);
    await this.samplers.dropSession(sessionId);
  }

  /** Drops what has expired. Runs by itself now and then. */
  async sweep(): Promise<void> {
    try {
      this.operations.futures.sweep();
      await this.checkpoints.sweep();
      for (const sessionId of this.sessions.expired()) {
        this.settings.log(`session ${sessionId} is silent; its models and samplers are freed`);
        await this.endSession(sessionId);
      }
    } catch (error) {
      if (!this.#ended.signal.aborted) this.settings.log(`sweep failed: ${String(error)}`);
    }
  }
}
