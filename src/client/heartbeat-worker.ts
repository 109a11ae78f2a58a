// Runs in a thread of its own, so that a busy main thread does not let the session die: posts a heartbeat at every interval and
// reports how it went.
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { parentPort, workerData } from "node:worker_threads";
import type { HeartbeatReport, HeartbeatSettings } from "./heartbeat.ts";

const { url, body, headers, intervalMs, timeoutMs } = (workerData as { data: HeartbeatSettings }).data;
const port = parentPort!;
let apiKey = headers["X-API-Key"]!;
port.on("message", (token: string) => {
  apiKey = token;
});
// The messages alone must not keep the thread, and with it the process, alive.
port.unref();

function beat(): void {
  const send = url.startsWith("https:") ? httpsRequest : httpRequest;
  const report = (status: number, error?: string) => port.postMessage({ status, error } satisfies HeartbeatReport);
  const request = send(
    url,
    {
      method: "POST",
      timeout: timeoutMs,
      headers: { ...headers, "X-API-Key": apiKey, "Content-Length": Buffer.byteLength(body) },
    },
    (response) => {
      response.resume();
      response.on("end", () => report(response.statusCode ?? 0));
      response.on("error", (error) => report(0, error.message));
    },
  );
  request.on("timeout", () => request.destroy(new Error(`no answer within ${timeoutMs} ms`)));
  request.on("error", (error) => report(0, error.message));
  request.end(body);
}

setInterval(beat, intervalMs);
