// Sampling sessions and samples.
import { samplingRoutes } from "../protocol/index.ts";
import { badRequest } from "./errors.ts";
import { serve } from "./route.ts";
import { checkSample } from "./sample-request.ts";
import type { SampleSequence } from "./samplers.ts";
import { checkCount } from "./training-routes.ts";

export const servedSamplingRoutes = serve(samplingRoutes, {
  createSamplingSession(app, { sessionId, samplingSessionSeqId, baseModel, modelPath }) {
    const sequence = checkCount(samplingSessionSeqId, "sampling_session_seq_id");
    const { id } = app.samplers.create(sessionId, sequence, { baseModel, modelPath });
    return { samplingSessionId: id, type: "create_sampling_session" };
  },
  joinSamplingSession: (app, { samplingSessionId }) => ({
    clientCounter: app.samplers.join(samplingSessionId),
    type: "join_sampling_session",
  }),
  sample(app, message, call) {
    const { samplingSessionId, baseModel, modelPath, seqId } = message;
    const record =
      samplingSessionId === undefined
        ? app.samplers.adHoc({ baseModel, modelPath })
        : app.samplers.get(samplingSessionId);
    const sequence = samplingSessionId === undefined || seqId === undefined ? undefined : checkSequence(seqId);
    app.sessions.touch(record.sessionId);
    const model = app.modelInfo(record.baseModel);
    const { request, fingerprint } = checkSample(message, model, app.settings.text?.(model.name));
    const operation = app.samplers.sample(record, sequence, request, { fingerprint, bytes: call.bytes.length });
    // The same again for a repeat, and no other sequence of the session has it.
    const prefix = sequence === undefined ? operation.id : `${record.sequence}.${sequence}`;
    return {
      requestId: operation.id,
      sampleSequenceIds: Array.from({ length: message.numSamples }, (_, index) => `${prefix}.${index}`),
    };
  },
});

const largestSequence = 2n ** 63n - 1n;

/** Copies of a client in other processes count from random multiples of a billion, up to about 10^18. */
function checkSequence(seqId: SampleSequence): SampleSequence {
  if (seqId >= 0 && seqId <= largestSequence) return seqId;
  throw badRequest("server/sequence-number", `seq_id=${seqId} is out of range. Count from 0 upwards.`);
}
