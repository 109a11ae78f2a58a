// Uses every entry of the package from plain JavaScript; prints one line that a test compares.
import { loadDataset } from "whetstone/data";
import { createGrader, normalizeTests, openSandbox } from "whetstone/grading";
import { getRenderer } from "whetstone/renderers";
import { presetConfig, runTraining } from "whetstone/rl";
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
await sandbox.close();
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
];
console.log(JSON.stringify(parts));
