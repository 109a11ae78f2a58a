// What passes between the threads of the engine: the one that serves, the host, and its compute workers.
import { messageOf, WhetstoneError } from "../core/errors.ts";
import type { Engine } from "./engine.ts";
import { EngineError, type Fault } from "./errors.ts";
import type { RunnableRequest } from "./sampler.ts";

/** What the host is asked in the engine's place: arguments in, one result out. */
export const hostCalls = [
  "createModel",
  "unloadModel",
  "forwardBackward",
  "optimStep",
  "saveState",
  "loadState",
  "saveForSampler",
  "createSampler",
  "releaseSampler",
] as const;
export type HostCalls = Pick<Engine, (typeof hostCalls)[number]>;

export type ToWorker =
  | { kind: "call"; id: number; name: string; args: unknown[] }
  /** `watched`: every token is reported as it is chosen. */
  | { kind: "sample"; id: number; samplerId: string; request: RunnableRequest; watched: boolean }
  | { kind: "cancel"; id: number }
  | { kind: "stop"; id: number; sample: number; length: number };

export type FromWorker =
  | { kind: "ready"; greeting: unknown }
  | { kind: "failed-start"; error: PlainError }
  | { kind: "result"; id: number; value: unknown }
  | { kind: "error"; id: number; error: PlainError }
  /** [request, sample, token], in the order they were chosen. */
  | { kind: "tokens"; tokens: [id: number, sample: number, token: number][] };

export interface PlainError {
  code: string;
  message: string;
  fault: Fault;
  stack: string | undefined;
}

/** An error as it crosses the thread boundary. */
export function toPlain(error: unknown): PlainError {
  const stack = error instanceof Error ? error.stack : undefined;
  if (error instanceof EngineError) return { code: error.code, message: error.message, fault: error.fault, stack };
  if (error instanceof WhetstoneError) return { code: error.code, message: error.message, fault: "server", stack };
  const message = `The engine failed unexpectedly: ${messageOf(error)}. Report it with the log.`;
  return { code: "engine/internal", message, fault: "server", stack };
}

export function fromPlain({ code, message, fault, stack }: PlainError): EngineError {
  const error = new EngineError(code, message, { fault });
  if (stack !== undefined) error.stack = stack;
  return error;
}
