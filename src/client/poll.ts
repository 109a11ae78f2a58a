// Waits for the result of an accepted operation by long polls.
import type { z } from "zod";
import {
  completeMetadataResponse,
  decode,
  encodeText,
  jsonType,
  ProtocolError,
  parseJson,
  protobufType,
  type QueueState,
  requestFailedResponse,
  routes,
  tryAgainResponse,
} from "../protocol/index.ts";
import { badResponse, type Connection } from "./connection.ts";
import { APITimeoutError, detailOf, RequestFailedError, statusError } from "./errors.ts";
import { Attempts } from "./retry.ts";
import { type HttpAnswer, textOf } from "./transport.ts";

export interface PollTarget<T> {
  requestId: string;
  /** What X-Tinker-Request-Type calls it, such as OptimStep. */
  operation: string;
  /** The model id or sampling session id whose queue this waits in. */
  queueId: string;
  /** Seconds between building the request and holding its id, reported to the server once. */
  roundTripSeconds?: number | undefined;
  /** What it ends with, in JSON. */
  result: z.ZodType<T>;
  /** Reads it in protobuf, where it may come so. */
  protobuf?: ((bytes: Uint8Array) => T) | undefined;
  /** The error for a request that the server does not have (any more): status 404 or 410. */
  lost: (status: number, detail: string) => Error;
  signal?: AbortSignal | undefined;
}

/** What a poll's answer says. `unready`: the server does not have the result yet. */
type PollAnswer<T> = { kind: "result"; value: T } | { kind: "metadata"; bytes: number } | Unready | { kind: "failure" };
interface Unready {
  kind: "unready";
  state: QueueState;
  reason: string | undefined;
}

/** Polls until the result is there. Throws RequestFailedError, what `lost` makes, or an APIStatusError. */
export async function poll<T>(connection: Connection, target: PollTarget<T>): Promise<T> {
  const { operation, queueId, signal } = target;
  const context = {
    ...connection.retryContext(`retrieve_future (${operation})`, signal),
    waitsFor: `${operation} of ${queueId}`,
    errorOf: (answer: HttpAnswer) => failureOf(target, answer),
  };
  const attempts = new Attempts(context, connection.policies.poll);
  let heldBytes = 0;
  try {
    for (let iteration = 0; ; iteration++) {
      const started = performance.now();
      const answer = await sendPoll(connection, target, iteration, heldBytes === 0).catch((error: unknown) => ({
        error,
      }));
      if ("error" in answer) {
        // A server that held the poll for longer than we wait (SkyRL does) is simply asked again.
        if (answer.error instanceof APITimeoutError)
          await attempts.notYet(performance.now() - started, { silent: answer.error });
        else await attempts.again(answer.error);
        continue;
      }
      const read = readAnswer(target, answer);
      if (read.kind === "result") return read.value;
      if (read.kind === "failure") await attempts.again(answer);
      else if (read.kind === "unready") {
        connection.reportQueueState({ id: queueId, state: read.state, reason: read.reason });
        await attempts.notYet(performance.now() - started);
      } else {
        if (heldBytes > 0) throw badResponse("retrieve_future", new Error("it announced its size twice."));
        await connection.resultBytes.take(read.bytes, ...context.signals);
        heldBytes = Math.max(1, read.bytes);
      }
    }
  } finally {
    if (heldBytes > 0) connection.resultBytes.give(heldBytes);
  }
}

function sendPoll<T>(
  connection: Connection,
  target: PollTarget<T>,
  iteration: number,
  allowMetadataOnly: boolean,
): Promise<HttpAnswer> {
  const headers: Record<string, string> = {
    "X-Tinker-Request-Iteration": String(iteration),
    "X-Tinker-Request-Type": target.operation,
  };
  if (iteration === 0 && target.roundTripSeconds !== undefined)
    headers["X-Tinker-Create-Promise-Roundtrip-Time"] = target.roundTripSeconds.toFixed(6);
  return connection.sendOnce({
    method: "POST",
    path: routes.retrieveFuture.path,
    body: encodeText(routes.retrieveFuture.request, { requestId: target.requestId, allowMetadataOnly }),
    accept: target.protobuf ? `${protobufType}, ${jsonType}` : jsonType,
    headers,
    timeoutMs: connection.options.timings.pollTimeoutMs,
    poll: true,
    signal: target.signal,
  });
}

function readAnswer<T>(target: PollTarget<T>, answer: HttpAnswer): PollAnswer<T> {
  const { status } = answer;
  if (status === 408) return readBusy(answer);
  if (status >= 400) return { kind: "failure" };
  try {
    if (String(answer.headers["content-type"] ?? "").includes(protobufType)) {
      if (!target.protobuf)
        throw new ProtocolError("protocol/invalid-message", "protobuf came where JSON was asked for.");
      return { kind: "result", value: target.protobuf(answer.body) };
    }
    const body = parseJson(textOf(answer));
    if (typeof body === "object" && body !== null) {
      const fields = body as Record<string, unknown>;
      if (fields["type"] === "try_again") return readTryAgain(body);
      if (fields["status"] === "complete_metadata")
        return { kind: "metadata", bytes: decode(completeMetadataResponse, body).responsePayloadSize };
      if ("error" in fields) {
        const { error, category, code } = decode(requestFailedResponse, { ...fields, error: String(fields["error"]) });
        throw requestFailed(target, error, category, code);
      }
    }
    return { kind: "result", value: decode(target.result, body) };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw badResponse(`retrieve_future (${target.operation})`, error);
  }
}

const queueStates: readonly QueueState[] = ["active", "paused_capacity", "paused_rate_limit"];

function readTryAgain(body: unknown): Unready {
  const { queueState: state = "active", queueStateReason: reason } = decode(tryAgainResponse, body);
  return { kind: "unready", state: queueStates.find((known) => known === state) ?? "unknown", reason };
}

/** Of a 408, whose body need not say anything. */
function readBusy(answer: HttpAnswer): Unready {
  try {
    return readTryAgain(JSON.parse(textOf(answer)));
  } catch {
    // A proxy's.
    return { kind: "unready", state: "active", reason: undefined };
  }
}

/** A status that ends the wait. SkyRL reports a failed operation as 400 with a `detail`. */
function failureOf<T>(target: PollTarget<T>, answer: HttpAnswer): Error {
  const text = textOf(answer);
  const refused = statusError(`retrieve_future (${target.operation})`, answer.status, text);
  if (answer.status === 404 || answer.status === 410) return target.lost(answer.status, detailOf(refused.body));
  const { body } = refused;
  if (answer.status === 400 && typeof body === "object" && body !== null && "detail" in body)
    return requestFailed(target, detailOf(body), "unknown", refused.serverCode);
  return refused;
}

function requestFailed<T>(
  target: PollTarget<T>,
  text: string,
  category: string,
  code: string | undefined,
): RequestFailedError {
  const known = category === "user" || category === "server" ? category : "unknown";
  const advice = {
    user: "Correct what was sent; the same request will fail again.",
    server: "The fault is the server's; its log says more.",
    unknown: "If the text does not say why, look into the server's log.",
  }[known];
  return new RequestFailedError(
    `${target.operation} failed at the server: ${detailOf(text)} ${advice}`,
    target.requestId,
    known,
    code,
  );
}
