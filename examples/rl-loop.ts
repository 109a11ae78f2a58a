// All of GRPO in one file: sample programs from a model, run them against tests, reinforce what passes.
//
//   node --import ./src/core/ts-loader.mjs examples/rl-loop.ts [seed=0] [steps=50] [learning_rate=1e-3] …
//
// It trains the bundled nano-coder on the bundled problems, on this machine: the Tinker server is a child process, programs run in
// the embedded jail. `src/rl/train.ts` is the same loop with checkpoints, resume and logs.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { buildMessages, loadDataset, type Problem } from "whetstone/data";
import { createGrader, type GradeResult, normalizeTests, openSandbox } from "whetstone/grading";
import { getRenderer } from "whetstone/renderers";
import { type DatumInput, type SamplingClient, ServiceClient } from "whetstone/tinker";
import { loadTokenizer } from "whetstone/tokenizer";

const settings = {
  seed: 0,
  steps: 50,
  prompts: 8, // problems per step
  completions: 16, // samples per problem: the group whose mean is the baseline
  rank: 32,
  learning_rate: 1e-3,
  max_tokens: 112,
  eval_problems: 450, // of the test set, before and after training; 0: no evaluation
};
for (const argument of process.argv.slice(2)) {
  const [key = "", value = ""] = argument.split("=");
  if (!(key in settings) || value === "" || !(Number(value) >= 0)) {
    console.error(`"${argument}" is no setting. Write key=number with one of ${Object.keys(settings).join(", ")}.`);
    process.exit(2);
  }
  settings[key as keyof typeof settings] = Number(value);
}

const started = performance.now();
const server = await startServer();
const service = new ServiceClient({ baseUrl: server.url, apiKey: server.apiKey });
const sandbox = await openSandbox();
try {
  const tokenizer = await loadTokenizer("nano-coder");
  const renderer = getRenderer("qwen3_instruct", tokenizer);
  const grader = createGrader({ sandbox });
  const training = await service.createLoraTrainingClient({
    baseModel: "nano-coder",
    rank: settings.rank,
    seed: settings.seed,
  });
  const problems = await loadDataset("starter", { split: "train", seed: settings.seed });
  const tests = await loadDataset("starter", { split: "test" });
  console.log(`${problems.size} problems; programs run in ${sandbox.description.summary}`);

  interface Answer {
    tokens: Int32Array;
    logprobs: Float32Array;
    grade: GradeResult;
  }

  const promptOf = ({ question, starterCode }: Problem): number[] =>
    renderer.buildGenerationPrompt(buildMessages({ question, starterCode }));

  /** Samples answers to a problem and grades each: 1 if it passes every test, 0 if not, −0.1 without a code block. */
  async function answer(sampler: SamplingClient, problem: Problem, count: number, seed: number): Promise<Answer[]> {
    const { sequences } = await sampler.sample({
      prompt: promptOf(problem),
      numSamples: count,
      samplingParams: {
        maxTokens: settings.max_tokens,
        temperature: count === 1 ? 0 : 1, // one answer: the likeliest, for evaluation
        stop: renderer.stop,
        seed,
      },
    });
    const task = { id: problem.id, tests: normalizeTests(await problem.loadTests(), problem).tests };
    return Promise.all(
      sequences.map(async ({ tokens, logprobs }) => {
        const response = renderer.parseResponse(tokens).message.content;
        return { tokens, logprobs: logprobs!, grade: await grader.grade({ problem: task, response }) };
      }),
    );
  }

  /** The answers of one problem as training data: each answer's advantage is its reward minus the mean of the group. */
  function toData(problem: Problem, answers: readonly Answer[]): DatumInput[] {
    const graded = answers.filter(({ grade }) => grade.reward !== null); // an outage of the sandbox is not a wrong answer
    const mean = average(graded.map(({ grade }) => grade.reward!));
    const prompt = promptOf(problem);
    return graded.flatMap(({ tokens, logprobs, grade }) => {
      const advantage = grade.reward! - mean;
      if (Math.abs(advantage) < 1e-8) return []; // all equal: nothing to learn
      // Position i predicts token i + 1. The prompt is not trained on: its advantages are zero.
      const sequence = [...prompt, ...tokens];
      const before = new Array<number>(prompt.length - 1).fill(0);
      return {
        modelInput: sequence.slice(0, -1),
        lossFnInputs: {
          target_tokens: sequence.slice(1),
          logprobs: [...before, ...logprobs],
          advantages: [...before, ...new Array<number>(tokens.length).fill(advantage)],
        },
      };
    });
  }

  /** Greedy Pass@1 on the three parts of the test set, with 95% intervals. */
  async function evaluate(title: string): Promise<void> {
    if (settings.eval_problems === 0) return;
    const sampler = await training.saveWeightsAndGetSamplingClient();
    const stride = Math.max(1, Math.floor(tests.size / settings.eval_problems));
    const chosen = tests.problems.filter((_, index) => index % stride === 0);
    const results = await Promise.all(chosen.map((problem) => answer(sampler, problem, 1, 0)));
    for (const part of new Set(chosen.map(({ source }) => source))) {
      const own = results.filter((_, index) => chosen[index]!.source === part).flat();
      const passed = own.filter(({ grade }) => grade.verdict === "pass").length;
      const interval = wilson(passed, own.length).map(percent).join(" to ");
      console.log(`${title}  ${part}: Pass@1 ${percent(passed / own.length)} (${interval}) of ${own.length}`);
    }
  }

  // The loop.
  await evaluate("before");
  for (let step = 0; step < settings.steps; step++) {
    const stepStarted = performance.now();
    const sampler = await training.saveWeightsAndGetSamplingClient(); // the policy as it is now, frozen
    const batch = problems.batch(step * settings.prompts, settings.prompts);
    const groups = await Promise.all(
      batch.map((problem, index) =>
        answer(sampler, problem, settings.completions, settings.seed * 1_000_003 + step * settings.prompts + index),
      ),
    );
    const data = groups.flatMap((answers, index) => toData(batch[index]!, answers));
    if (data.length > 0) {
      // Both are queued before either is awaited; the loss is a sum over tokens, −Σ p/q · advantage.
      const update = training.forwardBackward(data, "importance_sampling");
      const optim = training.optimStep({ learningRate: settings.learning_rate, beta1: 0.9, beta2: 0.95, eps: 1e-12 });
      await Promise.all([update, optim]);
    }
    const grades = groups.flat().map(({ grade }) => grade);
    console.log(
      `step ${String(step).padStart(2)}  reward ${average(grades.map(({ reward }) => reward ?? 0)).toFixed(3)}  ` +
        `correct ${percent(average(grades.map(({ verdict }) => Number(verdict === "pass"))))}  ` +
        `format ${percent(average(grades.map(({ formatOk }) => Number(formatOk))))}  ` +
        `data ${String(data.length).padStart(3)}  ${((performance.now() - stepStarted) / 1000).toFixed(1)} s`,
    );
  }
  await evaluate("after");
  console.log(`done in ${((performance.now() - started) / 1000).toFixed(0)} s`);
} finally {
  await sandbox.close();
  await service.close();
  await server.close();
}

/** Starts `./whet serve` on a free port with a key of its own; it ends with this process. */
async function startServer() {
  const apiKey = `tml-${randomBytes(24).toString("hex")}`;
  const stateDir = mkdtempSync(join(tmpdir(), "rl-loop-"));
  const whet = fileURLToPath(new URL("../whet", import.meta.url));
  const child = spawn(whet, ["serve", "port=0", `state_dir=${stateDir}`, "exit_with_parent=true"], {
    env: { ...process.env, TINKER_API_KEY: apiKey },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const address = /http:\/\/\S+/.exec(line)?.[0];
      if (address) resolve(address);
    });
    child.once("exit", (code) => reject(new Error(`The server ended with exit code ${code}; its message is above.`)));
  });
  const close = async () => {
    child.stdin.end(); // asks it to stop
    await ended;
    rmSync(stateDir, { recursive: true, force: true });
  };
  return { url, apiKey, close };
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

/** Wilson's 95% interval of a share. */
function wilson(passed: number, count: number): [low: number, high: number] {
  const [share, z] = [passed / count, 1.96];
  const middle = share + (z * z) / (2 * count);
  const half = z * Math.sqrt((share * (1 - share)) / count + (z / (2 * count)) ** 2);
  return [(middle - half) / (1 + (z * z) / count), (middle + half) / (1 + (z * z) / count)];
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0).padStart(3)}%`;
}
