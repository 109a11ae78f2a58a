// Runs in a thread of its own, so that a busy main thread does not let the session die: posts a heartbeat at every interval and
// reports how it went. Plain JavaScript: a thread that must first compile TypeScript takes three times as long to start.
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { parentPort, workerData } from "node:worker_threads";

/** @type {import("./heartbeat.ts").HeartbeatSettings} */
const { url, body, headers, intervalMs, timeoutMs } = workerData;
const send = url.startsWith("https:") ? httpsRequest : httpRequest;
let apiKey = headers["X-API-Key"];
parentPort.on("message", (token) => {
  apiKey = token;
});

function beat() {
  const report = (status, error) => parentPort.postMessage({ status, error });
  const length = Buffer.byteLength(body);
  const options = {
    method: "POST",
    timeout: timeoutMs,
    headers: { ...headers, "X-API-Key": apiKey, "Content-Length": length },
  };
  const request = send(url, options, (response) => {
    response.resume();
    response.on("end", () => report(response.statusCode));
    response.on("error", (error) => report(0, error.message));
  });
  request.on("timeout", () => request.destroy(new Error(`no answer within ${timeoutMs} ms`)));
  request.on("error", (error) => report(0, error.message));
  request.end(body);
}

setInterval(beat, intervalMs);
