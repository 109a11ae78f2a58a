// The polling of operations: their results, which of a client's samples have finished, and cancelling one.
import {
  completeMetadataResponse,
  encode,
  encodeForwardBackwardOutput,
  encodeSampleResponse,
  forwardBackwardOutput,
  futureRoutes,
  protobufType,
  requestFailedResponse,
  sampleResponse,
  tryAgainResponse,
} from "../protocol/index.ts";
import type { App } from "./app.ts";
import { type Failure, ServerError } from "./errors.ts";
import { Answer, jsonAnswer } from "./http.ts";
import type { Operation, Result } from "./operations.ts";
import { serve } from "./route.ts";
import { clientKey } from "./samplers.ts";

export const servedFutureRoutes = serve(futureRoutes, {
  async retrieveFuture(app, { requestId, allowMetadataOnly }, call) {
    const { futures } = app.operations;
    const operation = futures.get(requestId);
    if (!(await futures.wait(operation, app.settings.pollHoldMs, call.signal, app.ended)))
      return jsonAnswer(encode(tryAgainResponse, { type: "try_again", requestId, queueState: "active" }), 408);
    return resultAnswer(app, operation, {
      protobuf: call.header("accept").includes(protobufType),
      allowMetadataOnly,
    });
  },
  async retrieveFutures(app, { target, prevCursor, retrievedRequestIds }, call) {
    const { id } = app.samplers.get(target.samplingSessionId);
    if (app.completions.isForeign(prevCursor))
      throw new ServerError(
        410,
        "server/request-lost",
        `Cursor ${prevCursor} is from before the server restarted: the samples that were under way are lost. Make a new sampling client.`,
      );
    for (const requestId of retrievedRequestIds) app.operations.futures.release(requestId);
    const { completions, cursor } = await app.completions.after(
      clientKey(id, target.clonedSamplerId),
      prevCursor,
      app.settings.pollHoldMs,
      call.signal,
      app.ended,
    );
    return {
      cursor,
      completions: completions.map(({ state, requestId, bytes }) => ({
        state,
        requestId,
        ...(state === "finished" && { responsePayloadUncompressedSize: bytes }),
      })),
    };
  },
  cancelFuture(app, { requestId }) {
    app.operations.futures.get(requestId).cancel?.();
  },
});

function resultAnswer(
  app: App,
  operation: Operation,
  options: { protobuf: boolean; allowMetadataOnly: boolean },
): Answer {
  const outcome = operation.outcome!;
  const large = operation.bytes >= app.settings.announceBytes;
  if (outcome.ok && outcome.result.kind !== "json" && large && options.allowMetadataOnly) {
    const announced = { status: "complete_metadata" as const, responsePayloadSize: operation.bytes };
    return jsonAnswer(encode(completeMetadataResponse, announced));
  }
  const answer = outcome.ok ? encodeResult(outcome.result, options.protobuf) : failureAnswer(outcome.failure);
  answer.onSent = () => app.operations.futures.delivered(operation);
  return answer;
}

const failureAnswer = ({ message, category, code }: Failure) =>
  jsonAnswer(encode(requestFailedResponse, { error: `${message} [${code}]`, category, code }));

function encodeResult(result: Result, protobuf: boolean): Answer {
  if (result.kind === "json") return jsonAnswer(result.body);
  if (protobuf) {
    const body =
      result.kind === "training" ? encodeForwardBackwardOutput(result.output) : encodeSampleResponse(result.output);
    return new Answer({ status: 200, contentType: protobufType, body });
  }
  return result.kind === "training"
    ? jsonAnswer(encode(forwardBackwardOutput, result.output))
    : jsonAnswer({ type: "sample", ...(encode(sampleResponse, result.output) as object) });
}
