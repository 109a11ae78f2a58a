// A proxy on loopback that holds every answer back for a random time: the same parts, another timing.
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "../../src/core/random.ts";

export interface DelayingProxy {
  url: string;
  close(): Promise<void>;
}

/** Forwards to `target`; each answer waits up to `mostMs`, drawn by `seed`. */
export async function delayingProxy(target: string, mostMs: number, seed: number): Promise<DelayingProxy> {
  const random = new Random("proxy", seed);
  const { hostname, port } = new URL(target);
  const server = createServer((incoming, outgoing) => {
    const delayMs = random.float() ** 3 * mostMs;
    const forwarded = request(
      { hostname, port, path: incoming.url, method: incoming.method, headers: incoming.headers },
      (answer) => {
        void sleep(delayMs).then(() => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(outgoing);
        });
      },
    );
    forwarded.on("error", () => outgoing.destroy());
    incoming.pipe(forwarded);
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
