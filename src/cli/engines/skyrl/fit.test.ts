import { expect, test } from "vitest";
import { bundledModel } from "../../../core/bundled.ts";
import { gib } from "../machine.ts";
import { fitInto, type Sizes, sizesOf } from "./fit.ts";

/** Qwen3-4B, by its config.json. */
const qwen4b: Sizes = {
  parameters: 4.02e9,
  width: 2,
  adapterPerRank: 36 * (2 * (2560 + 4096) + 2 * (2560 + 1024) + 3 * (2560 + 9728)),
  tokenNumbers: 2 * 36 * 8 * 128,
  layers: 36,
  heads: 32,
  hidden: 2560,
  inner: 9728,
  vocabulary: 151_936,
};
const wanted = { window: 2048, rank: 32, adapters: 8, answers: 256, group: 16 };

test("a folder's sizes are those of its weights", () => {
  const sizes = sizesOf(bundledModel("nano-coder")!);
  expect(sizes).toMatchObject({ width: 2, layers: 4, hidden: 192, vocabulary: 1024, tokenNumbers: 2 * 4 * 2 * 32 });
  expect(sizes!.parameters).toBeGreaterThan(2e6);
  expect(sizesOf("/nowhere")).toBeUndefined();
});

test("more memory takes more sequences at once, never more than a step has", () => {
  const [small, medium, large] = [16, 24, 80].map((memory) => fitInto(memory * gib, qwen4b, wanted));
  expect(small!.sampled).toBeLessThan(medium!.sampled);
  expect(medium!.sampled).toBeLessThan(large!.sampled);
  expect(fitInto(10_000 * gib, qwen4b, wanted)).toMatchObject({ sampled: 256, trained: 16, checkpointing: false });
  expect(medium!.sampled * 2048 * qwen4b.tokenNumbers * 2 + medium!.fixedBytes).toBeLessThan(24 * gib);
});

test("a model that does not fit is given no sequence", () => {
  expect(fitInto(8 * gib, qwen4b, wanted)).toMatchObject({ sampled: 0, trained: 0 });
});

test("a pass that took 26 GiB on an H200 is not tried in 24, and is in 40", () => {
  const smollm2: Sizes = {
    parameters: 134.5e6,
    width: 4,
    adapterPerRank: 30 * (2 * (576 + 576) + 2 * (576 + 192) + 3 * (576 + 1536)),
    tokenNumbers: 2 * 30 * 3 * 64,
    layers: 30,
    heads: 9,
    hidden: 576,
    inner: 1536,
    vocabulary: 49_152,
  };
  const trained = (memory: number) => fitInto(memory * gib, smollm2, { ...wanted, window: 512 });
  expect(trained(24)).toMatchObject({ trained: 8, checkpointing: false });
  expect(trained(40)).toMatchObject({ trained: 16, checkpointing: false });
});
