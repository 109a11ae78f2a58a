// A program that trains, asks things of its own run at given steps, and kills itself at a given event: what a test needs to have the same
// controls at the same steps in two runs. Its one argument is JSON.
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { runTraining } from "whetstone/rl";
import { ServiceClient } from "whetstone/tinker";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { buildMessages } from "../../src/data/question.ts";
import { type Control, requestControl } from "../../src/runs/controls.ts";

export interface ControlledRun {
  baseUrl: string;
  apiKey: string;
  path: string;
  lag: number;
  steps: number;
  /** What is asked when a step is done. */
  ask: Record<number, Control[]>;
  learningRate?: number;
  /** Problems of a step, with six answers each; 8 unless told. */
  prompts?: number;
  onError?: "warn" | "pause" | "stop" | "rollback";
  /** `step-done 3`, `control 2`: killed when this was written down. */
  killAt?: string;
}

interface Row {
  id: string;
  problem: string;
  kind: string;
}

const given = JSON.parse(process.argv[2]!) as ControlledRun;
const service = new ServiceClient({ baseUrl: given.baseUrl, apiKey: given.apiKey });
const rows = readJsonLines(fileURLToPath(new URL("../../data/starter/train.jsonl", import.meta.url))) as Row[];
const problems = rows
  .filter(({ kind }) => kind === "stdin")
  .slice(0, 60)
  .map(({ id, problem }) => ({
    id,
    prompt: buildMessages({ question: problem, starterCode: null, call: null }, { systemRole: false }),
  }));

await runTraining({
  service,
  problems,
  testProblems: problems.slice(0, 2).map((problem) => ({ ...problem, id: `test-${problem.id}` })),
  // Three of four answers that begin as programs do are right; noise never is.
  reward: ({ text }) =>
    text.startsWith("```python") && createHash("sha256").update(text).digest()[0]! % 4 > 0 ? 1 : 0,
  config: {
    preset: "nano",
    max_steps: given.steps,
    max_lag: given.lag,
    prompts_per_step: given.prompts ?? 8,
    completions_per_prompt: 6,
    learning_rate: given.learningRate ?? 2.5e-3,
    on_error: given.onError ?? "warn",
    max_tokens: 64,
    eval_every: 100,
    save_every: 3,
    log_path: given.path,
    behavior_if_log_dir_exists: "resume",
    tensorboard: false,
  },
  onMessage: (line) => console.error(line),
  onEvent: (event) => {
    if (!("step" in event)) return;
    if (`${event.type} ${event.step}` === given.killAt) process.kill(process.pid, "SIGKILL");
    if (event.type === "step-done")
      for (const control of given.ask[event.step] ?? []) requestControl(given.path, control, "test");
  },
});
await service.close();
