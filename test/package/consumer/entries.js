// Uses every entry of the package from plain JavaScript; prints one line that a test compares.
import { loadDataset } from "whetstone/data";
import { createGrader, normalizeTests, openSandbox } from "whetstone/grading";
import { getRenderer } from "whetstone/renderers";
import { computeAdvantages, presetConfig, runTraining, toDatum } from "whetstone/rl";
import { defaultLimits } from "whetstone/sandbox";
import { ServiceClient, tensor } from "whetstone/tinker";
import { loadTokenizer } from "whetstone/tokenizer";

const tokenizer = await loadTokenizer("nano-coder");
const batch = await tokenizer.encodeBatch(Array(3000).fill("def f(x): return x")); // large enough for a worker thread
const renderer = getRenderer("qwen3_instruct", tokenizer);
const prompt = renderer.buildGenerationPrompt([{ role: "user", content: "hello" }]);
const problems = await loadDataset("starter", { split: "test" });
const sandbox = await openSandbox();
const { tests } = normalizeTests({ inputs: ["1\n"], outputs: ["2\n"] });
const response = "```python\nprint(int(input()) + 1)\n```";
const { verdict } = await createGrader({ sandbox }).grade({ problem: { id: "one", tests }, response });
const job = { source: "print(6 * 7)", tests: [{ kind: "stdin", stdin: "" }], limits: defaultLimits, preamble: false };
const [outcome] = await sandbox.run(job, () => "continue");
await sandbox.close();
const [advantage] = computeAdvantages([1, 0]);
const datum = toDatum({ prompt: [1, 2], completion: [3], logprobs: [-0.5], advantage });
const noEntry = await import("whetstone").catch((error) => error.message);
const service = new ServiceClient({ apiKey: "tml-none" });
await service.close();
const refused = await runTraining({ service, problems: [] }).catch((error) => error.code);
const parts = [
  presetConfig("nano").model_name,
  refused,
  batch.length,
  prompt.length > 5,
  problems.size > 100,
  verdict,
  tensor([1, 2]).data.length,
  Buffer.from(outcome.stdout).toString().trim(),
  [...datum.lossFnInputs.advantages.data],
  /has no main entry.*whetstone\/rl.*whetstone\/sandbox/.test(noEntry),
];
console.log(JSON.stringify(parts));
