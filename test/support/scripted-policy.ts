// A policy whose answers a test writes, on the simulated engine: it calls tools, thinks and makes mistakes as a test wants it. Its
// log-probabilities are a real model's, the trainer's own, so that what is trained can be compared with what was sampled.

import { join } from "node:path";
import { getRenderer } from "whetstone/renderers";
import { type Environment, runTraining, type TrainingOptions, type TrainingProblem } from "whetstone/rl";
import { ServiceClient } from "whetstone/tinker";
import { SimulatedEngine, simulatedModelName } from "../../src/engine/simulated/engine.ts";
import { startServer, type TinkerServer } from "../../src/server/index.ts";
import { loadTokenizer } from "../../src/tokenizer/index.ts";
import { tinyTokenizerFolder } from "../data/tiny-tokenizer.ts";
import { eventsOf, newFolder } from "./environment-runs.ts";

/** Tools in the system message, reasoning kept: a conversation is one sequence. */
export const toolTemplate = [
  "{%- if tools %}<|im_start|>system\n{% if messages[0].role == 'system' %}{{ messages[0].content }}\n{% endif %}",
  "Tools:\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}",
  "{%- for message in messages %}",
  "{%- if message.role == 'system' and tools and loop.first %}",
  "{%- elif message.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ message.content }}\n</tool_response><|im_end|>\n",
  "{%- else %}<|im_start|>{{ message.role }}\n",
  "{%- if message.reasoning_content %}<think>\n{{ message.reasoning_content }}\n</think>\n\n{% endif %}",
  "{{- message.content }}",
  "{%- for call in message.tool_calls or [] %}{% if message.content or not loop.first %}\n{% endif %}",
  '<tool_call>\n{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>{% endfor %}',
  "<|im_end|>\n{% endif %}",
  "{%- endfor %}{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
].join("");

/** What the model may answer to a prompt, as text with its marks; one of them is drawn. */
export type Answers = (prompt: string) => readonly string[];

/** How a call of a tool is written. */
export const called = (name: string, given: string): string =>
  `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${given}}\n</tool_call>`;

/** The end of a prompt: what was said since the last answer. */
export const lastSaid = (prompt: string): string => prompt.split("<|im_start|>assistant\n").at(-2) ?? "";

export interface ScriptedPolicy {
  server: TinkerServer;
  /** What the model answers from now on. */
  answers: Answers;
  /** Prompts that it was asked, in their order. */
  readonly prompts: string[];
  /** Called as a request for an answer comes in; it is sampled when the promise resolves. */
  before: (() => Promise<void> | void) | undefined;
  train<Problem extends TrainingProblem>(
    environment: Environment<Problem>,
    options?: Partial<TrainingOptions<Problem>> & { path?: string },
  ): Promise<{ path: string; events: ReturnType<typeof eventsOf> }>;
  close(): Promise<void>;
}

export async function scriptedPolicy(): Promise<ScriptedPolicy> {
  const tokenizer = await loadTokenizer(tinyTokenizerFolder({ chatTemplate: toolTemplate }));
  const renderer = getRenderer("template", tokenizer);
  const apiKey = "tml-scripted";
  const script = {
    length: "constant:0",
    solveRate: "constant:1",
    filler: [1],
    endToken: tokenizer.tokenId("<|im_end|>")!,
    rightAnswers: (prompt: Int32Array) => {
      const text = tokenizer.decode([...prompt]);
      policy.prompts.push(text);
      return policy.answers(text).map(letters);
    },
    wrongAnswers: [],
    malformedAnswers: [],
  };
  /** Letter by letter: no tokenizer would write it so, and whoever tokenizes an answer again is found out. ‹ and › are < and > of no tag. */
  const letters = (text: string): number[] =>
    text
      .split(/(<\/?(?:think|tool_call)>)/)
      .flatMap((piece) =>
        /^<\/?(?:think|tool_call)>$/.test(piece)
          ? [tokenizer.tokenId(piece)!]
          : [...piece].flatMap((letter) => tokenizer.encode({ "‹": "<", "›": ">" }[letter] ?? letter)),
      );
  const server = await startServer({
    stateDir: newFolder(),
    createEngine: async () =>
      new SimulatedEngine({
        vocabSize: tokenizer.vocabSize,
        maxContextLength: 2_000_000,
        script,
      }),
    apiKey,
    drainMs: 0,
    intercept: async ({ route }, handle) => {
      if (route === "sample") await policy.before?.();
      return handle();
    },
  });
  const policy: ScriptedPolicy = {
    server,
    answers: () => ["."],
    prompts: [],
    before: undefined,
    async train(environment, { config, path = join(newFolder(), "run"), ...rest } = {}) {
      const service = new ServiceClient({ baseUrl: server.url, apiKey });
      try {
        const settings = {
          preset: "nano",
          model_name: simulatedModelName,
          max_steps: 1,
          prompts_per_step: 1,
          completions_per_prompt: 4,
          max_tokens: 2048,
          context_window: 65_536,
          tensorboard: false,
          log_path: path,
        } as const;
        await runTraining({ service, environment, renderer, ...rest, config: { ...settings, ...config } });
      } finally {
        await service.close();
      }
      return { path, events: eventsOf(path) };
    },
    close: () => server.close(),
  };
  return policy;
}
