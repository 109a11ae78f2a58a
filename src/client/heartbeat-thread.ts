// The program of the thread that sends heartbeats. It is text, not a file to load: a bundler that packs the client into one file
// would leave a second file behind, and a thread that must first find and compile a module starts three times as slowly.

/** Posts a heartbeat at every interval and reports how it went; a message from outside is a new API key. CommonJS, as `eval` wants. */
export const heartbeatThread = `
const { parentPort, workerData } = require("node:worker_threads");
const { url, body, headers, intervalMs, timeoutMs } = workerData;
const { request: send } = require(url.startsWith("https:") ? "node:https" : "node:http");
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
    response.on("end", () => {
      // The session was finished: there is nothing left to keep alive.
      if (response.statusCode === 410) clearInterval(timer);
      report(response.statusCode);
    });
    response.on("error", (error) => report(0, error.message));
  });
  request.on("timeout", () => request.destroy(new Error("no answer within " + timeoutMs + " ms")));
  request.on("error", (error) => report(0, error.message));
  request.end(body);
}

const timer = setInterval(beat, intervalMs);
`;
