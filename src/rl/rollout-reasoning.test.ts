// What the grader is given of a model that reasons: the answer alone, and whether it was cut off.
import { expect, test } from "vitest";
import { tinyTokenizerFolder } from "../../test/data/tiny-tokenizer.ts";
import { getRenderer } from "../renderers/index.ts";
import { loadTokenizer } from "../tokenizer/index.ts";
import { type Answer, sampleAndJudge } from "./rollout.ts";

type RollOutArguments = Parameters<ReturnType<ReturnType<typeof sampleAndJudge>>>;

const draft = "```python\ndraft\n```";
const final = "```python\nfinal\n```";
const samples: [response: string, stopReason: "stop" | "length", text: string, truncated: boolean][] = [
  [`<think>\n${draft}\n</think>\n\n${final}<|im_end|>`, "stop", final, false],
  [`<think>\n${draft}\n</think>\n\n${final}`, "length", final, true],
  [`<think>\n${draft}`, "length", "", true],
  // The model ended its turn before its reasoning did.
  [`<think>\n${draft}<|im_end|>`, "stop", "", true],
  [`${final}<|im_end|>`, "stop", final, false],
];

test("only the answer is graded, and reasoning that never ends counts as cut off", async () => {
  const chatTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  const tokenizer = await loadTokenizer(tinyTokenizerFolder({ chatTemplate }));
  for (const name of ["qwen3", "template"]) {
    const renderer = getRenderer(name, tokenizer);
    const asked: { stop?: unknown }[] = [];
    // A sampler that always writes the same.
    const sampler = {
      sample: (request: { samplingParams: { stop?: unknown } }) => {
        asked.push(request.samplingParams);
        return Promise.resolve({
          sequences: samples.map(([response, stopReason]) => {
            const tokens = Int32Array.from(tokenizer.encode(response, { special: true }));
            return { tokens, logprobs: new Float32Array(tokens.length), stopReason };
          }),
        });
      },
    };
    const judged: Answer[] = [];
    const rollOut = sampleAndJudge(renderer, (_, answer) => {
      judged.push(answer);
      return Promise.resolve({ verdict: "fail" } as never);
    })({
      samples: samples.length,
      temperature: 1,
      seedFor: () => 1,
      record: () => Promise.resolve(),
    });
    const task = { id: "p", source: "s", prompt: Int32Array.of(1), maxTokens: 100, datasetIndex: 0 };
    const policy = { open: () => Promise.resolve({ sampler, version: 0 }) };
    await rollOut(
      { step: 0, group: 0 } as unknown as RollOutArguments[0],
      task as unknown as RollOutArguments[1],
      policy as unknown as RollOutArguments[2],
      new AbortController().signal,
    );
    expect(judged.map(({ text, truncated }) => [text, truncated])).toEqual(
      samples.map(([, , text, truncated]) => [text, truncated]),
    );
    expect(asked[0]!.stop).toEqual(renderer.stop);
  }
});
