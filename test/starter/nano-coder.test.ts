// The bundled model: its size, its tokenizer against its own chat template, its prompts against those of its pre-training, and the
// embedded engine's numbers against transformers'.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Template } from "@huggingface/jinja";
import { expect, test } from "vitest";
import { buildMessages } from "../../src/data/question.ts";
import { createEmbeddedEngine } from "../../src/engine/index.ts";
import { getRenderer } from "../../src/renderers/index.ts";
import { loadTokenizer } from "../../src/tokenizer/index.ts";
import golden from "./golden/nano-coder-logprobs.json" with { type: "json" };

const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = join(root, "models/nano-coder");
const json = (name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"));

test("2 to 4 million parameters in at most 10 MB, tokenizer and card included", () => {
  const file = readFileSync(join(folder, "model.safetensors"));
  const header = JSON.parse(file.subarray(8, 8 + Number(file.readBigUInt64LE(0))).toString());
  const shapes = Object.entries<{ shape: number[] }>(header).filter(([name]) => name !== "__metadata__");
  const parameters = shapes.reduce((sum, [, { shape }]) => sum + shape.reduce((product, size) => product * size, 1), 0);
  expect(parameters).toBeGreaterThan(2e6);
  expect(parameters).toBeLessThan(4e6);
  const bytes = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  expect(bytes).toBeLessThan(10e6);
  expect(json("config.json").architectures).toEqual(["Qwen3ForCausalLM"]);
});

test("the renderer's tokens are those of the model's own chat template", async () => {
  const tokenizer = await loadTokenizer(folder);
  const renderer = getRenderer("qwen3_instruct", tokenizer);
  const template = new Template(json("tokenizer_config.json").chat_template);
  const conversations = [
    [{ role: "user" as const, content: "Print the sum." }],
    [
      { role: "system" as const, content: "Be brief. Ünïcode 字 too." },
      { role: "user" as const, content: "first\n\nsecond  line" },
      { role: "assistant" as const, content: "```python\nprint(1)\n```" },
      { role: "user" as const, content: "and now?" },
    ],
  ];
  for (const messages of conversations) {
    const text = template.render({ messages, add_generation_prompt: true });
    expect(renderer.buildGenerationPrompt(messages)).toEqual([...tokenizer.encode(text, { special: true })]);
  }
  expect(renderer.stop).toEqual([json("config.json").eos_token_id]);
});

test("prompts are, letter for letter, those the model was pre-trained on", () => {
  const rows = readFileSync(join(root, "data/starter/test.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter((_, index) => index % 25 === 0);
  const program = [
    "import json, sys",
    `sys.path.insert(0, ${JSON.stringify(join(root, "scripts/nano-coder"))})`,
    "import corpus",
    'print(json.dumps([corpus.question(row["problem"], row["starter_code"]) for row in json.load(sys.stdin)]))',
  ].join("\n");
  const output = execFileSync("python3", ["-B", "-c", program], { input: JSON.stringify(rows), encoding: "utf8" });
  const ours = rows.map((row) => buildMessages({ question: row.problem, starterCode: row.starter_code })[0]!.content);
  expect(JSON.parse(output)).toEqual(ours);
});

test("the embedded engine gives every token the log-probability that transformers gives it", async () => {
  const engine = await createEmbeddedEngine({ models: [{ name: "nano-coder", dir: folder }] });
  try {
    await engine.createSampler("base", { kind: "base", baseModel: "nano-coder" });
    for (const { tokens, logprobs } of golden.cases) {
      const { promptLogprobs } = await engine.sample("base", {
        prompt: Int32Array.from(tokens),
        numSamples: 1,
        settings: { maxTokens: 1, seed: 0, temperature: 0, topK: -1, topP: 1, stopTokens: [] },
        promptLogprobs: true,
        topkPromptLogprobs: 0,
      });
      const apart = logprobs.map((value, index) => Math.abs(value - promptLogprobs![index + 1]!));
      expect(Math.max(...apart)).toBeLessThan(1e-4);
    }
  } finally {
    await engine.close();
  }
});
