import { expect, test } from "vitest";
import { decodeForwardBackwardRequest } from "../protocol/index.ts";
import { BytesPool } from "./bytes-pool.ts";
import { encodeBatches } from "./data.ts";

class CountingPool extends BytesPool {
  taken = 0;
  override take(size: number): Uint8Array {
    this.taken++;
    return super.take(size);
  }
}

const limits = { maxData: 2, maxBytes: 1e9 };
const settings = { modelId: "m", lossFn: "cross_entropy", lossFnConfig: {}, forwardOnly: false };
const typed = (token: number) => ({
  modelInput: Int32Array.of(token, 2),
  lossFnInputs: { target_tokens: Int32Array.of(2, 3), weights: Float32Array.of(0, 1) },
});

test("a batch of typed arrays is written request by request, when each may be sent", async () => {
  const pool = new CountingPool();
  const batches = await encodeBatches([1, 2, 3, 4, 5].map(typed), limits, settings, pool);
  expect(batches).toHaveLength(3);
  expect(pool.taken).toBe(0);
  for (const [index, batch] of batches.entries()) {
    const { seqId, data } = decodeForwardBackwardRequest(await batch.finish(index + 7));
    expect(seqId).toBe(index + 7);
    expect(data).toHaveLength(index < 2 ? 2 : 1);
    expect(pool.taken).toBe(index + 1);
    batch.release();
  }
});

test("a wrong value in a plain list is found before anything may be sent", async () => {
  const wrong = { modelInput: [1, 2], lossFnInputs: { target_tokens: [2, Number.NaN], weights: [0, 1] } };
  await expect(encodeBatches([typed(1), typed(2), wrong], limits, settings, new BytesPool())).rejects.toThrow(
    /data\[2\]/,
  );
});
