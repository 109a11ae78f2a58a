// Faults that let a request be carried out and spoil its answer.
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultRule } from "./faults.ts";
import type { Answer } from "./http.ts";

/** In how many pieces a slow answer comes. */
const slowPieces = 20;

/** Sends, or does not send, the answer as the fault says. True: it was dealt with. */
export async function spoilAnswer(
  fault: FaultRule,
  exchange: {
    request: IncomingMessage;
    response: ServerResponse;
    answer: Answer;
    /** Fires when the server closes: no silence outlives it. */
    ended: AbortSignal;
    restart: (downMs: number) => void;
  },
): Promise<boolean> {
  const { request, response, answer, ended, restart } = exchange;
  const body = Buffer.from(typeof answer.body === "string" || answer.body instanceof Uint8Array ? answer.body : "");
  const silence = (ms: number) => sleep(ms, undefined, { signal: ended }).catch(() => {});
  const head = () =>
    response.writeHead(answer.status, {
      "content-type": answer.contentType ?? "",
      "content-length": body.length,
      ...answer.headers,
    });
  switch (fault.fault) {
    case "drop-after":
      request.socket.destroy();
      return true;
    case "restart-after":
      restart(fault.ms);
      return true;
    case "hang":
      await silence(fault.ms);
      request.socket.destroy();
      return true;
    case "half-open":
      head().write(body.subarray(0, body.length >> 1));
      await silence(fault.ms);
      request.socket.destroy();
      return true;
    case "slow-body": {
      head();
      const pieces = Math.min(body.length, slowPieces);
      for (let piece = 0; piece < pieces && !response.destroyed; piece++) {
        response.write(body.subarray((body.length * piece) / pieces, (body.length * (piece + 1)) / pieces));
        await silence(fault.ms / pieces);
      }
      response.end();
      return true;
    }
    default:
      return false;
  }
}
