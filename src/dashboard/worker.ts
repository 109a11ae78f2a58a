// The thread that serves a run's own dashboard: whatever browsers do, the loop that trains does not notice.
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../core/errors.ts";
import { startDashboard } from "./server.ts";

export type FromDashboard = { url: string } | { error: string };

const port = parentPort!;
const { runPath } = (workerData as { data: { runPath: string } }).data;
const send = (message: FromDashboard) => port.postMessage(message);

try {
  const server = await startDashboard({ roots: [runPath], port: 0 });
  port.once("message", () => void server.close().finally(() => port.close()));
  send({ url: server.url });
} catch (error) {
  send({ error: messageOf(error) });
  port.close();
}
