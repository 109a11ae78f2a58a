// The judge thread: comparing, shrinking and taking programs out of long answers, away from the event loop.
import { parentPort } from "node:worker_threads";
import { messageOf } from "../core/errors.ts";
import { extractCode } from "./extract.ts";
import type { JudgeReply, JudgeRequest } from "./judge-thread.ts";
import { shrinkOutput } from "./shrink.ts";
import { verdictOn } from "./verdicts.ts";

parentPort!.on("message", ({ id, task }: JudgeRequest) => {
  try {
    const result = perform(task);
    parentPort!.postMessage({ id, result } satisfies JudgeReply, result instanceof Uint8Array ? [result.buffer] : []);
  } catch (error) {
    parentPort!.postMessage({ id, error: messageOf(error) } satisfies JudgeReply);
  }
});

function perform(task: JudgeRequest["task"]) {
  if (task.kind === "judge") return task.evidence.map(verdictOn);
  if (task.kind === "extract") return extractCode(task.response, task.options);
  // A copy of its own: what was cut off is to be let go.
  return shrinkOutput(task.bytes, task.comparator).slice();
}
