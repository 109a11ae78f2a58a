// The thread that encodes large batches.
import { workerData } from "node:worker_threads";
import { answerCalls } from "../core/worker-calls.ts";
import type { Batch, BatchFiles } from "./batch.ts";
import { openTokenizer } from "./tokenizer.ts";

const { paths, name, controlTokens } = (workerData as { data: BatchFiles }).data;
const tokenizer = openTokenizer(paths, name, controlTokens);
// A failure to load is the answer to every batch.
tokenizer.catch(() => {});

answerCalls(
  async ({ texts, options }: Batch) => {
    const loaded = await tokenizer;
    return texts.map((text) => Int32Array.from(loaded.encode(text, options)));
  },
  (ids) => ids.map((tokens) => tokens.buffer),
);
