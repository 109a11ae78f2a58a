// The worker thread's side of the engine: takes messages, drives the host, answers.
import { parentPort, workerData } from "node:worker_threads";
import { EngineHost, type HostOptions } from "./host.ts";
import { type FromWorker, type ToWorker, toPlain } from "./messages.ts";
import type { RunningRequest } from "./sampler.ts";

const port = parentPort!;
const send = (message: FromWorker): void => port.postMessage(message);

const requests = new Map<number, RunningRequest>();
let chosen: [id: number, sample: number, token: number][] = [];

/** Tokens of one step go out in one message, and before any result that contains them. */
function flushTokens(): void {
  if (chosen.length === 0) return;
  send({ kind: "tokens", tokens: chosen });
  chosen = [];
}

function reportToken(id: number, sample: number, token: number): void {
  if (chosen.length === 0) setImmediate(flushTokens);
  chosen.push([id, sample, token]);
}

async function answer(id: number, work: () => unknown): Promise<void> {
  try {
    const value = await work();
    flushTokens();
    send({ kind: "result", id, value });
  } catch (error) {
    send({ kind: "error", id, error: toPlain(error) });
  }
}

async function sample(host: EngineHost, message: ToWorker & { kind: "sample" }): Promise<unknown> {
  const { id, samplerId, request, watched } = message;
  const running = host.sample(
    samplerId,
    request,
    watched ? (index, token) => reportToken(id, index, token) : undefined,
  );
  requests.set(id, running);
  try {
    return await running.result;
  } finally {
    requests.delete(id);
  }
}

function receive(host: EngineHost, message: ToWorker): void {
  switch (message.kind) {
    case "call": {
      const method = host[message.name] as (...args: unknown[]) => unknown;
      void answer(message.id, () => method.apply(host, message.args)).then(() => {
        if (message.name === "close") port.close();
      });
      break;
    }
    case "sample":
      void answer(message.id, () => sample(host, message));
      break;
    case "cancel":
      requests.get(message.id)?.cancel();
      requests.delete(message.id);
      break;
    case "stop":
      requests.get(message.id)?.stop(message.sample, message.length);
      break;
  }
}

try {
  const host = new EngineHost((workerData as { data: HostOptions }).data);
  port.on("message", (message: ToWorker) => receive(host, message));
  send({ kind: "ready", models: host.models });
} catch (error) {
  send({ kind: "failed-start", error: toPlain(error) });
}
