// Conversations over real formats, with answers that are made up: what is sent is what was shown and sampled with the new messages behind
// it; where the format writes earlier turns otherwise, a sequence begins anew or the old one is kept, as the run is set.
import { describe, expect, test } from "vitest";
import { templatesAreThere, templateTokenizer, vectorsNow } from "../../test/data/templates.ts";
import { tinyTokenizerFolder } from "../../test/data/tiny-tokenizer.ts";
import { getRenderer, type Message, type Renderer } from "../renderers/index.ts";
import { TemplateRenderer } from "../renderers/template/template-renderer.ts";
import { loadTokenizer } from "../tokenizer/index.ts";
import { Conversation, type Draw, type Limits, messagesTo } from "./conversation.ts";

const limits: Limits = { max_tokens: 50, context_window: 2000, min_generation: 1, history: "template" };
const user = (content: string): Message => ({ role: "user", content });

/** A conversation whose answers are these texts, and what was asked of the model. */
function scripted(renderer: Renderer, answers: readonly string[], more: Partial<Limits> = {}) {
  const asked: Draw[] = [];
  const conversation = new Conversation(
    renderer,
    async (request) => {
      const text = answers[asked.length] ?? "";
      asked.push(request);
      const tokens = Int32Array.from(renderer.tokenizer.encode(text, { special: true }));
      const { message } = renderer.parseResponse(tokens, request.tools ? { tools: request.tools } : {});
      const drawn = { tokens, logprobs: new Float32Array(tokens.length), truncated: false, answer: message };
      return { ...drawn, index: asked.length - 1 };
    },
    { ...limits, ...more },
  );
  return { conversation, asked };
}

const thinking = [
  "<think>\nhm\n</think>\n\none<|im_end|>",
  "<think>\nso\n</think>\n\ntwo<|im_end|>",
  "three<|im_end|>",
];
const qwen = async () => getRenderer("qwen3", await loadTokenizer(tinyTokenizerFolder()));

test("reasoning that the format drops begins a sequence anew, or is kept: then it is one, as it was sampled", async () => {
  const renderer = await qwen();
  for (const history of ["template", "keep"] as const) {
    const { conversation, asked } = scripted(renderer, thinking, { history });
    const first = await conversation.ask({ added: [user("?")] });
    const second = await conversation.ask({ after: first, added: [user("and?")] });
    const isKept = history === "keep";
    expect(second.parent).toBe(isKept ? first : undefined);
    expect(second.rewritten).toBe(
      isKept ? undefined : "the reasoning of an earlier answer is left out once the conversation goes on",
    );
    const sent = renderer.tokenizer.decode(asked[1]!.prompt);
    expect(sent.includes("hm")).toBe(isKept);
    if (isKept) expect([...asked[1]!.prompt].slice(0, -second.context.length)).toEqual([...conversation.pathOf(first)]);
    else expect([...asked[1]!.prompt]).toEqual(renderer.buildGenerationPrompt([...messagesTo(first), user("and?")]));
  }
});

test("after results of tools alone the reasoning stays; each turn is sent behind the path of the one before, also in forks", async () => {
  const renderer = await qwen();
  const { conversation, asked } = scripted(renderer, [...thinking, "four<|im_end|>"]);
  const result: Message = { role: "tool", content: "42" };
  const first = await conversation.ask({ added: [user("?")] });
  const second = await conversation.ask({ after: first, added: [result] });
  const fork = await conversation.ask({ after: first, added: [{ ...result, content: "43" }] });
  const third = await conversation.ask({ after: second, added: [result] });
  expect([second, fork, third].map(({ parent }) => parent)).toEqual([first, first, second]);
  for (const [index, turn] of [first, second, fork, third].entries()) {
    const before = turn.parent ? [...conversation.pathOf(turn.parent)] : [];
    expect([...asked[index]!.prompt]).toEqual([...before, ...turn.context]);
    expect([...conversation.pathOf(turn)]).toEqual([...asked[index]!.prompt, ...turn.tokens]);
  }
});

test.each<[string, Message[], object]>([
  ["the list of tools is another: f added", [user("!")], { tools: [{ type: "function", function: { name: "f" } }] }],
  ["an answer was added that the model did not give", [{ role: "assistant", content: "no" }, user("!")], {}],
  ["a system message was added", [{ role: "system", content: "be short" }], {}],
])("%s: a sequence begins anew", async (why, added, options) => {
  const renderer = getRenderer("qwen3_instruct", await toolTokenizer());
  const { conversation } = scripted(renderer, ["one<|im_end|>", "two<|im_end|>"]);
  const first = await conversation.ask({ added: [user("?")] });
  expect(await conversation.ask({ after: first, added, ...options })).toMatchObject({
    parent: undefined,
    rewritten: why,
  });
});

/** A template that declares tools as Qwen3's does, in the system message. */
const toolTemplate = `{%- if tools %}{{- '<|im_start|>system\n' }}{%- for tool in tools %}{{- tool | tojson }}{%- endfor %}{{- '<|im_end|>\n' }}{%- endif %}
{%- for message in messages %}{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{%- endfor %}`;
const toolTokenizer = () => loadTokenizer(tinyTokenizerFolder({ chatTemplate: toolTemplate }));

test("an answer without an end cannot be gone on from, and the window ends a conversation before anything is sampled", async () => {
  const { conversation, asked } = scripted(await qwen(), ["one", "two<|im_end|>"]);
  const first = await conversation.ask({ added: [user("?")] });
  const second = await conversation.ask({ after: first, added: [user("and?")] });
  expect(second.rewritten).toBe("the answer ended without its end-of-turn token");
  const tooLong = conversation.ask({ after: second, added: [user("x ".repeat(3000))] });
  await expect(tooLong).rejects.toMatchObject({ stop: "context" });
  expect(asked).toHaveLength(2);
});

describe.skipIf(!templatesAreThere)("a template that refuses", () => {
  const call = '{"name": "f", "parameters": {}}';
  const ask = async (answer: string, added: Message[]) => {
    const renderer = new TemplateRenderer(await templateTokenizer("llama-3.1"), { now: vectorsNow });
    const { conversation } = scripted(renderer, [answer]);
    const tools = [{ type: "function", function: { name: "f", description: "", parameters: {} } }];
    const first = await conversation.ask({ added: [user("?")], tools });
    return conversation.ask({ after: first, added, tools });
  };

  test("what the model wrote ends the episode", async () => {
    const result: Message = { role: "tool", content: "1" };
    await expect(ask(`${call}; ${call}<|eot_id|>`, [result, result])).rejects.toMatchObject({ stop: "malformed" });
    expect(await ask(`${call}<|eot_id|>`, [result])).toBeDefined();
  });

  test("what the caller said is an error of theirs", async () => {
    const strange = { role: "critic", content: "?" } as unknown as Message;
    await expect(ask("Well.<|eot_id|>", [strange])).rejects.toThrow(/role/);
  });
});
