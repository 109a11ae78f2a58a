// What the servers of this machine share: their port, a secret that a request bears, the body of a request under a limit, answers in JSON.
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Resolves to the port when the server listens. Port 0: any free one. */
export async function listen(server: Server, port: number, host: string): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return (server.address() as AddressInfo).port;
}

/** Whether a secret is the one that is wanted; as fast for every wrong one. */
export function isSecret(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}

/** Reads a whole body; throws what `tooLarge` makes as soon as it is known to have more bytes than `limit`. */
export async function readBody(
  request: IncomingMessage,
  limit: number,
  tooLarge: (bytes: number) => Error,
): Promise<Uint8Array<ArrayBuffer>> {
  const declared = Number(request.headers["content-length"] ?? Number.NaN);
  if (declared > limit) throw tooLarge(declared);
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += (part as Buffer).length;
    if (bytes > limit) throw tooLarge(bytes);
    parts.push(part as Buffer);
  }
  return Buffer.concat(parts);
}

/** Answers with a value. */
export function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: OutgoingHttpHeaders = {},
): void {
  const bytes = Buffer.from(JSON.stringify(value));
  response.writeHead(status, { "content-type": "application/json", "content-length": bytes.length, ...headers });
  response.end(bytes);
}
