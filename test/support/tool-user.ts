// The bundled model, taught in seconds to call a tool: what it samples then is its own, calls that cannot be read among them.
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ServiceClient } from "whetstone/tinker";
import { getRenderer, type Message, type Renderer } from "../../src/renderers/index.ts";
import { loadTokenizer } from "../../src/tokenizer/index.ts";

const model = fileURLToPath(new URL("../../models/nano-coder/", import.meta.url));

/** Declares tools as Qwen's does, in fewer words. */
const template = `{%- if tools %}{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n' }}{%- endif %}
{%- for tool in tools %}{{- tool.function.name + ': ' + tool.function.description + '\\n' }}{%- endfor %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}{%- if not (tools and loop.first and message.role == 'system') %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`;

/** The chat format of the bundled model, with tools; its files are put into the folder. */
export async function toolRenderer(folder: string): Promise<Renderer> {
  for (const file of ["tokenizer.json", "tokenizer_config.json", "generation_config.json", "config.json"])
    copyFileSync(join(model, file), join(folder, file));
  writeFileSync(join(folder, "chat_template.jinja"), template);
  return getRenderer("qwen3_instruct", await loadTokenizer(folder));
}

export const numbers = Array.from({ length: 4 }, (_, index) => ({
  id: `number-${index}`,
  secret: 3 + index,
  prompt: `Double ${3 + index}.`,
}));
export type NumberProblem = (typeof numbers)[number];

const declaration = { name: "double", description: "Doubles n." };
const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

/** Doubles its number; refuses what is none. */
export const tools = {
  double: { description: declaration.description, inputSchema: schema, execute: ({ n }: { n: number }) => `${2 * n}` },
};

/** The rank of its adapter: who goes on from it says the same. */
export const taughtRank = 8;

/** Teaches the model a call and an answer for each number; returns the weights. */
export async function teachTools(
  { baseUrl, apiKey }: { baseUrl: string; apiKey: string },
  renderer: Renderer,
): Promise<string> {
  const declared = { tools: [{ type: "function", function: { ...declaration, parameters: schema } }] };
  const lessons = numbers.flatMap(({ secret, prompt }) => {
    const asked: Message = { role: "user", content: prompt };
    const call: Message = {
      role: "assistant",
      content: "",
      toolCalls: [{ name: "double", arguments: { n: secret } }],
    };
    const result: Message = { role: "tool", content: `${2 * secret}` };
    const answer: Message = { role: "assistant", content: `${2 * secret}` };
    return [
      [asked, call],
      [asked, call, result, answer],
    ];
  });
  const data = lessons.map((lesson) => {
    const { tokens, weights } = renderer.buildSupervisedExample(lesson, declared);
    return {
      modelInput: tokens.slice(0, -1),
      lossFnInputs: { target_tokens: tokens.slice(1), weights: weights.slice(1) },
    };
  });
  const service = new ServiceClient({ baseUrl, apiKey });
  try {
    const training = await service.createLoraTrainingClient({ baseModel: "nano-coder", rank: taughtRank, seed: 1 });
    for (let step = 0; step < 36; step++)
      await Promise.all([training.forwardBackward(data, "cross_entropy"), training.optimStep({ learningRate: 0.004 })]);
    const { path } = await training.saveState("taught");
    return path;
  } finally {
    await service.close();
  }
}
