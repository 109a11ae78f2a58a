// Waits for the result of an accepted operation by long polls.
import {
  completeMetadataResponse,
  decode,
  encodeText,
  jsonType,
  type OperationType,
  ProtocolError,
  parseJson,
  protobufType,
  type QueueState,
  requestFailedResponse,
  retrieveFutureRequest,
  routes,
  tryAgainResponse,
} from "../protocol/index.ts";
import { badResponse, type Connection } from "./connection.ts";
import { APIConnectionError, APITimeoutError, detailOf, RequestFailedError, statusError } from "./errors.ts";
import { backoff } from "./retry.ts";
import { type HttpAnswer, textOf } from "./transport.ts";
import { sleep } from "./wait.ts";

export interface PollTarget<T> {
  requestId: string;
  operation: OperationType;
  /** The model id or sampling session id whose queue this waits in. */
  queueId: string;
  /** Seconds between building the request and holding its id, told to the server once. */
  roundTripSeconds?: number | undefined;
  json: (body: unknown) => T;
  protobuf?: ((bytes: Uint8Array) => T) | undefined;
  /** The error for a request that the server does not have (any more): status 404 or 410. */
  lost: (status: number, detail: string) => Error;
  signal?: AbortSignal | undefined;
}

const badRequestRetries = 3;
/** A server that answers "not ready" faster than this is not holding its polls. */
const quickAnswerMs = 50;

/** Polls until the result is there. Throws RequestFailedError, what `lost` makes, or an APIStatusError. */
export async function poll<T>(connection: Connection, target: PollTarget<T>): Promise<T> {
  const { timings } = connection.options;
  const signals = [target.signal, connection.closing];
  const accept = target.protobuf ? `${protobufType}, ${jsonType}` : jsonType;
  const pause = (count: number) => sleep(backoff(count, timings.pollRetryBaseMs, timings.pollRetryMaxMs), ...signals);
  const body = (allowMetadataOnly: boolean) =>
    encodeText(retrieveFutureRequest, { requestId: target.requestId, allowMetadataOnly });
  let heldBytes = 0;
  let metadataAllowed = true;
  let unanswered = 0;
  let serverErrors = 0;
  let badRequests = 0;
  let quickAnswers = 0;
  const fullBody = body(true);
  try {
    for (let iteration = 0; ; iteration++) {
      const started = performance.now();
      let answer: HttpAnswer;
      try {
        answer = await connection.sendOnce({
          method: "POST",
          path: routes.retrieveFuture,
          body: metadataAllowed ? fullBody : body(false),
          accept,
          headers: pollHeaders(target, iteration),
          timeoutMs: timings.pollTimeoutMs,
          poll: true,
          signal: target.signal,
        });
      } catch (error) {
        if (!(error instanceof APIConnectionError)) throw error;
        // A server that held the poll for longer than we wait (SkyRL does) is simply asked again.
        if (!(error instanceof APITimeoutError)) await pause(unanswered++);
        continue;
      }
      const { status } = answer;
      if (status === 429) {
        await pause(unanswered++);
        continue;
      }
      unanswered = 0;
      if (status >= 500) {
        // The first is asked again at once; a server that stays down is not hammered.
        if (serverErrors > 0) await pause(serverErrors - 1);
        serverErrors++;
        continue;
      }
      serverErrors = 0;

      if (status < 400) {
        const read = readAnswer(target, answer);
        if (read.kind === "result") return read.value;
        if (read.kind === "metadata") {
          if (!metadataAllowed) throw badResponse("retrieve_future", new Error("it announced its size twice."));
          metadataAllowed = false;
          await connection.resultBytes.take(read.bytes, ...signals);
          heldBytes = read.bytes;
          continue;
        }
        connection.reportQueueState({ id: target.queueId, state: read.state, reason: read.reason });
      } else if (status === 408) {
        const again = tryAgainOf(answer);
        if (again) {
          badRequests = 0;
          connection.reportQueueState({ id: target.queueId, state: again.state, reason: again.reason });
        }
      } else if (status === 402) {
        await connection.billing.wait(statusError("retrieve_future", status, textOf(answer)), signals);
        continue;
      } else if (status === 400 && badRequests < badRequestRetries) {
        badRequests++;
        continue;
      } else throw failureOf(target, answer);

      // Not ready: ask again at once, unless the server does not hold its polls.
      quickAnswers = performance.now() - started < quickAnswerMs ? quickAnswers + 1 : 0;
      if (quickAnswers > 1) await sleep(backoff(quickAnswers - 2, 10, 1000), ...signals);
    }
  } finally {
    if (heldBytes > 0) connection.resultBytes.give(heldBytes);
  }
}

function pollHeaders<T>(target: PollTarget<T>, iteration: number): Record<string, string> {
  const headers: Record<string, string> = {
    "X-Tinker-Request-Iteration": String(iteration),
    "X-Tinker-Request-Type": target.operation,
  };
  if (iteration === 0 && target.roundTripSeconds !== undefined)
    headers["X-Tinker-Create-Promise-Roundtrip-Time"] = target.roundTripSeconds.toFixed(6);
  return headers;
}

type PollAnswer<T> =
  | { kind: "result"; value: T }
  | { kind: "metadata"; bytes: number }
  | { kind: "again"; state: QueueState; reason: string | undefined };

function readAnswer<T>(target: PollTarget<T>, answer: HttpAnswer): PollAnswer<T> {
  try {
    if (String(answer.headers["content-type"] ?? "").includes(protobufType)) {
      if (!target.protobuf)
        throw new ProtocolError("protocol/invalid-message", "protobuf came where JSON was asked for.");
      return { kind: "result", value: target.protobuf(answer.body) };
    }
    const body = parseJson(textOf(answer));
    if (typeof body === "object" && body !== null) {
      const fields = body as Record<string, unknown>;
      if (fields["type"] === "try_again") return { kind: "again", ...readTryAgain(body) };
      if (fields["status"] === "complete_metadata")
        return { kind: "metadata", bytes: decode(completeMetadataResponse, body).responsePayloadSize };
      if ("error" in fields) {
        const { error, category } = decode(requestFailedResponse, { ...fields, error: String(fields["error"]) });
        throw requestFailed(target, error, category, fields["code"]);
      }
    }
    return { kind: "result", value: target.json(body) };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw badResponse(`retrieve_future (${target.operation})`, error);
  }
}

function readTryAgain(body: unknown): { state: QueueState; reason: string | undefined } {
  const { queueState, queueStateReason } = decode(tryAgainResponse, body);
  const known = queueState === "active" || queueState === "paused_capacity" || queueState === "paused_rate_limit";
  return { state: known ? queueState : queueState === undefined ? "active" : "unknown", reason: queueStateReason };
}

function tryAgainOf(answer: HttpAnswer): { state: QueueState; reason: string | undefined } | undefined {
  try {
    const body = JSON.parse(textOf(answer)) as unknown;
    return (body as { type?: unknown }).type === "try_again"
      ? readTryAgain(body)
      : { state: "active", reason: undefined };
  } catch {
    return undefined;
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

function requestFailed<T>(target: PollTarget<T>, text: string, category: string, code: unknown): RequestFailedError {
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
    typeof code === "string" ? code : undefined,
  );
}
