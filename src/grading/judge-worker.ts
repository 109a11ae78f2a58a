// The judge thread: comparing, shrinking and taking programs out of long answers, away from the event loop.
import { answerCalls } from "../core/worker-calls.ts";
import { extractAnswer } from "./extract.ts";
import type { Task } from "./judge-thread.ts";
import { shrinkOutput } from "./shrink.ts";
import { verdictOn } from "./verdicts.ts";

answerCalls(
  (task: Task) => {
    if (task.kind === "judge") return task.evidence.map(verdictOn);
    if (task.kind === "extract") return extractAnswer(task.response, task.options);
    // A copy of its own: what was cut off is to be let go.
    return shrinkOutput(task.bytes, task.comparator).slice();
  },
  (result) => (result instanceof Uint8Array ? [result.buffer] : []),
);
