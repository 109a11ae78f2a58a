// The thread that encodes large batches.
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../core/errors.ts";
import type { BatchFiles, BatchReply, BatchRequest } from "./batch.ts";
import { readTokenizerFiles } from "./files.ts";
import { JsonTokenizer } from "./tokenizer.ts";

const { paths, name, controlTokens } = (workerData as { data: BatchFiles }).data;
const tokenizer = readTokenizerFiles(paths, name).then((files) => new JsonTokenizer(files, { controlTokens }));
// A failure to load is the answer to every request.
tokenizer.catch(() => {});

parentPort!.on("message", ({ id, texts, options }: BatchRequest) => {
  void tokenizer.then(
    (loaded) => {
      const ids = texts.map((text) => Int32Array.from(loaded.encode(text, options)));
      parentPort!.postMessage(
        { id, ids } satisfies BatchReply,
        ids.map((tokens) => tokens.buffer as ArrayBuffer),
      );
    },
    (error: unknown) => parentPort!.postMessage({ id, error: messageOf(error) } satisfies BatchReply),
  );
});
