// Groups that were trained on already, as tasks: they are rolled out from the journal, so they need neither data nor tests.
import type { Recovered } from "./recovery.ts";
import type { Task } from "./tasks.ts";

export function recordedTasks(recovered: Recovered, batch: number): Task[] {
  return (recovered.trainedGroups(batch) ?? []).map(({ sampled }) => ({
    id: sampled.problem,
    source: sampled.source,
    datasetIndex: sampled.datasetIndex,
    prompt: new Int32Array(),
    maxTokens: 0,
    loadTests: () => Promise.reject(new Error(`${sampled.problem} was graded already`)),
  }));
}
