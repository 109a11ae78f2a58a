// A proxy on loopback that holds answers back: the same parts, another timing.
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "../../src/core/random.ts";

export interface DelayingProxy {
  url: string;
  close(): Promise<void>;
}

/** A request as the proxy sees it before its answer goes out. */
export interface Held {
  method: string;
  path: string;
  body: Buffer;
  answer: Buffer;
}

/** Forwards to `target`; each answer waits up to `maxMs`, drawn by `seed`. */
export function delayingProxy(target: string, maxMs: number, seed: number): Promise<DelayingProxy> {
  const random = new Random("proxy", seed);
  return holdingProxy(target, () => sleep(random.float() ** 3 * maxMs, undefined));
}

/**
 * Forwards to `target`; each answer waits for what `hold` returns. A number is a status that is answered instead; `before`: asked before
 * the request is sent on, which it then is not.
 */
export async function holdingProxy(
  target: string,
  hold: (held: Held) => Promise<number | undefined>,
  { before = false } = {},
): Promise<DelayingProxy> {
  const { hostname, port } = new URL(target);
  const server = createServer(async (incoming, outgoing) => {
    const { url: path = "", method = "" } = incoming;
    try {
      const body = await buffer(incoming);
      const refused = before ? await hold({ method, path, body, answer: Buffer.alloc(0) }) : undefined;
      if (refused !== undefined) return void outgoing.writeHead(refused).end();
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        const forwarded = request({ hostname, port, path, method, headers: incoming.headers }, resolve);
        forwarded.on("error", reject);
        forwarded.end(body);
      });
      const bytes = await buffer(answer);
      const status = before ? undefined : await hold({ method, path, body, answer: bytes });
      outgoing.writeHead(status ?? answer.statusCode ?? 502, status === undefined ? answer.headers : {});
      outgoing.end(status === undefined ? bytes : "");
    } catch {
      outgoing.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * Holds back what becomes of requests to routes that `isSlow` names, for `ms` each: submits are answered at once, so that everything keeps
 * its place in the server's queue, and the first polls for their results wait.
 */
export function slowResults(isSlow: (held: Held) => boolean, ms: number): (held: Held) => Promise<undefined> {
  const slow = new Set<string>();
  return async (held) => {
    if (isSlow(held)) {
      const { request_id: id } = JSON.parse(held.answer.toString()) as { request_id?: string };
      if (id !== undefined) slow.add(id);
    }
    if (!held.path.includes("/retrieve_future")) return undefined;
    const { request_id: id } = JSON.parse(held.body.toString()) as { request_id: string };
    return sleep(slow.delete(id) ? ms : 0, undefined);
  };
}
