// The program of the thread that sends heartbeats. It is text, not a file to load: a bundler that packs the client into one file
// would leave a second file behind, and a thread that must first find and compile a module starts three times as slowly.

/** Posts a heartbeat at every interval and reports how it went; a message from outside is a new API key. CommonJS, as `eval` wants. */
export const heartbeatThread = `
const { parentPort, workerData } = require("node:worker_threads");
const { url, body, headers, proxy, intervalMs, timeoutMs } = workerData;
const http = require("node:http");
const https = require("node:https");
const tls = require("node:tls");
const isSecure = url.startsWith("https:");
const login = proxy && proxy.authorization ? { "Proxy-Authorization": proxy.authorization } : {};
let apiKey = headers["X-API-Key"];
parentPort.on("message", (token) => {
  apiKey = token;
});

// As src/core/proxy.ts does it: a tunnel to an https address, the whole request for an http one.
const sendTo = (address) => (address.startsWith("https:") ? https : http).request;
function send(options, use, fail) {
  if (!proxy) return use(sendTo(url)(url, options));
  if (!isSecure) return use(sendTo(proxy.origin)(proxy.origin, { ...options, path: url, headers: { ...options.headers, Host: new URL(url).host, ...login } }));
  const { hostname, port } = new URL(url);
  const path = hostname + ":" + (port || 443);
  const tunnel = sendTo(proxy.origin)(proxy.origin, { method: "CONNECT", path, headers: { Host: path, ...login }, agent: false, timeout: timeoutMs });
  const refuse = (response) => tunnel.destroy(new Error("the proxy answered " + response.statusCode));
  tunnel.once("response", refuse);
  tunnel.once("connect", (response, socket) => {
    if (response.statusCode !== 200) {
      socket.destroy();
      return fail(new Error("the proxy answered " + response.statusCode));
    }
    const secured = () => tls.connect({ socket, host: hostname, servername: /[a-z]/i.test(hostname) ? hostname : "" });
    use(https.request(url, { ...options, agent: false, createConnection: secured }));
  });
  tunnel.once("timeout", () => tunnel.destroy(new Error("no answer within " + timeoutMs + " ms")));
  tunnel.once("error", fail);
  tunnel.end();
}

function beat() {
  const report = (status, error) => parentPort.postMessage({ status, error });
  const length = Buffer.byteLength(body);
  const options = {
    method: "POST",
    timeout: timeoutMs,
    headers: { ...headers, "X-API-Key": apiKey, "Content-Length": length },
  };
  const failed = (error) => report(0, error.message);
  const use = (request) => {
    request.on("response", (response) => {
      response.resume();
      response.on("end", () => {
        // The session was finished: there is nothing left to keep alive.
        if (response.statusCode === 410) clearInterval(timer);
        report(response.statusCode);
      });
      response.on("error", failed);
    });
    request.on("timeout", () => request.destroy(new Error("no answer within " + timeoutMs + " ms")));
    request.on("error", failed);
    request.end(body);
  };
  send(options, use, failed);
}

const timer = setInterval(beat, intervalMs);
`;
