// The body of a request, under a limit.
import type { IncomingMessage } from "node:http";

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
