// An engine of this machine, as commands see it: how it is started, and what it keeps in the cache folder.
import type { TrainConfig } from "../../rl/config.ts";
import type { Logger } from "../../runs/log.ts";

export interface EngineOptions {
  /** Where an engine of this machine keeps checkpoints and what it knows of them. */
  stateDir: string;
  /** Gets what it says. */
  logFile: string;
  logger: Logger;
  /** Ends an installation, a download, or the wait for its start. */
  signal?: AbortSignal | undefined;
  /** Called when it is gone for good. */
  onLost?: ((error: Error) => void) | undefined;
}

export interface EngineStart extends EngineOptions {
  /** The base model, as a person names it. */
  model: string;
  config: Partial<TrainConfig>;
}

export interface RunningEngine {
  url: string;
  apiKey: string;
  /** Names it in what is remembered of how it behaves; unless given, its address does. */
  identity?: string;
  close(): Promise<void>;
}

export interface LocalEngine {
  summary: string;
  start(start: EngineStart): Promise<RunningEngine>;
  /** What it installs, and where; none where nothing is. */
  installs?: { what: string; folder(): string; isWhole(): boolean };
}
