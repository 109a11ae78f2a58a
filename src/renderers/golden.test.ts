// Token for token agreement with what Qwen3's own chat template gives in the reference implementations.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Template } from "@huggingface/jinja";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { golden, qwen3Folder, sharedIsThere } from "../../test/data/shared.ts";
import { templateSource, templatesAreThere } from "../../test/data/templates.ts";
import { loadTokenizer, type Tokenizer } from "../tokenizer/index.ts";
import type { Message, ToolDeclaration } from "./messages.ts";
import { getRenderer } from "./registry.ts";
import type { Renderer } from "./renderer.ts";

fc.configureGlobal({ seed: 1 });

interface ChatVector {
  kind: string;
  name: string;
  model?: string;
  messages: WireMessage[];
  tools?: unknown[] | null;
  kwargs: { add_generation_prompt?: boolean; enable_thinking?: boolean };
  text: string;
  ids?: number[];
  assistant_mask_all?: number[];
  assistant_mask_final?: number[];
}

interface WireMessage {
  role: Message["role"];
  content: string | null;
  reasoning_content?: string;
  tool_calls?: { function: { name: string; arguments: Record<string, unknown> | string } }[];
}

/**
 * Vectors that are not reproduced, and why. The template lets text in a message become control tokens: a data row could end the
 * user's turn and open another. Here such text stays text, so the ids differ where it stands, and nowhere else.
 */
const exceptions: Record<string, string> = {
  "special-in-content":
    "its user message has the texts <|im_end|> and <|im_start|>, which must not become control tokens",
};

describe.skipIf(!sharedIsThere)("Qwen3's chat template", () => {
  let tokenizer: Tokenizer;
  let newline: number[];
  beforeAll(async () => {
    tokenizer = await loadTokenizer(qwen3Folder());
    newline = tokenizer.encode("\n");
  });

  /** The template ends each message with a newline; a renderer puts it before the next header, so the last one is added here. */
  function render(vector: ChatVector): number[] {
    const messages = vector.messages.map(toMessage);
    const tools = (vector.tools ?? []) as ToolDeclaration[];
    if (vector.kwargs.add_generation_prompt) {
      const name = vector.kwargs.enable_thinking === false ? "qwen3_disable_thinking" : "qwen3";
      return getRenderer(name, tokenizer).buildGenerationPrompt(messages, { tools });
    }
    const example = getRenderer("qwen3", tokenizer).buildSupervisedExample(messages, { trainOn: "all_tokens", tools });
    return [...example.tokens, ...newline];
  }

  const generated = sharedIsThere ? golden<ChatVector>("generated_chat", readKeepingFloats) : [];
  const published = sharedIsThere ? golden<ChatVector>("published_vectors").filter(({ kind }) => kind === "chat") : [];
  const label = (vector: ChatVector) =>
    `${vector.name}${vector.tools ? " with tools" : ""} ${JSON.stringify(vector.kwargs)}`;

  test("every generated vector is reproduced or is a stated exception", () => {
    const different: string[] = [];
    for (const vector of generated) {
      const tokens = render(vector);
      if (vector.name in exceptions) {
        expect(tokenizer.decode(tokens), label(vector)).toBe(vector.text);
        different.push(label(vector));
      } else {
        expect(tokens, label(vector)).toEqual(vector.ids);
      }
    }
    expect(generated).toHaveLength(124);
    expect(different).toHaveLength(8);
  });

  test("in the exceptions only the control tokens of the template are control tokens", () => {
    const hostile = generated.filter(({ name }) => name in exceptions);
    for (const vector of hostile) {
      const count = (tokens: readonly number[]) => tokens.filter((id) => tokenizer.isSpecial(id)).length;
      // The text has one forged <|im_end|> and one forged <|im_start|>.
      expect(count(render(vector))).toBe(count(vector.ids!) - 2);
    }
  });

  test("qwen3_instruct writes the same where the template writes no think block", () => {
    const renderer = getRenderer("qwen3_instruct", tokenizer);
    const plain = generated.filter(({ text, messages }) => !/think/.test(text + JSON.stringify(messages)));
    let compared = 0;
    for (const vector of plain.filter(({ name }) => !(name in exceptions))) {
      const messages = vector.messages.map(toMessage);
      const tools = (vector.tools ?? []) as ToolDeclaration[];
      const tokens = vector.kwargs.add_generation_prompt
        ? renderer.buildGenerationPrompt(messages, { tools })
        : [...renderer.buildSupervisedExample(messages, { trainOn: "all_tokens", tools }).tokens, ...newline];
      expect(tokens, label(vector)).toEqual(vector.ids);
      compared++;
    }
    expect(compared).toBeGreaterThan(20);
  });

  const renderers = new Map<string, Renderer>();
  /** Where the hand-made renderers keep content that begins with blank lines apart from its header, the template does not. */
  const renderByTemplate = (vector: ChatVector, source = tokenizer): number[] => {
    const messages = vector.messages.map(toMessage);
    const tools = (vector.tools ?? []) as ToolDeclaration[];
    const thinking = vector.kwargs.enable_thinking === false ? "off" : "";
    const key = `${source.name} ${thinking}`;
    const renderer = renderers.get(key) ?? getRenderer("template", source, { thinking });
    renderers.set(key, renderer);
    if (vector.kwargs.add_generation_prompt) return renderer.buildGenerationPrompt(messages, { tools });
    return [...renderer.buildSupervisedExample(messages, { trainOn: "all_tokens", tools }).tokens, ...newline];
  };

  test("template gives the ids of qwen3 and qwen3_disable_thinking on every vector, generated and published", () => {
    const qwen3 = [...generated, ...published.filter(({ model }) => model?.startsWith("Qwen/Qwen3"))];
    for (const vector of qwen3) {
      const tokens = renderByTemplate(vector);
      expect(tokens, label(vector)).toEqual(render(vector));
      if (!(vector.name in exceptions)) expect(tokens, label(vector)).toEqual(vector.ids);
    }
    expect(qwen3).toHaveLength(127);
  });

  test.skipIf(!templatesAreThere)(
    "template with the template of the 2507 models gives the ids of qwen3_instruct",
    async () => {
      const folder = qwen3Folder();
      writeFileSync(join(folder, "chat_template.jinja"), templateSource("qwen3-instruct-2507"));
      const instruct2507 = await loadTokenizer(folder);
      const byHand = getRenderer("qwen3_instruct", tokenizer);
      const plain = generated.filter(({ messages }) => !/think|reasoning/.test(JSON.stringify(messages)));
      for (const vector of plain) {
        const messages = vector.messages.map(toMessage);
        const tools = (vector.tools ?? []) as ToolDeclaration[];
        const expected = vector.kwargs.add_generation_prompt
          ? byHand.buildGenerationPrompt(messages, { tools })
          : [...byHand.buildSupervisedExample(messages, { trainOn: "all_tokens", tools }).tokens, ...newline];
        expect(
          renderByTemplate({ ...vector, kwargs: { ...vector.kwargs, enable_thinking: true } }, instruct2507),
          label(vector),
        ).toEqual(expected);
      }
      expect(plain.length).toBeGreaterThanOrEqual(64);
    },
  );

  test("every published Qwen3 conversation is reproduced", () => {
    // The remaining one is Qwen2.5's template, whose tool results and declarations are the same; see the next test.
    const qwen3 = published.filter(({ model }) => model?.startsWith("Qwen/Qwen3"));
    for (const vector of qwen3) expect(render(vector), vector.name).toEqual(vector.ids);
    expect(qwen3).toHaveLength(3);
    expect(published).toHaveLength(4);
  });

  test("two tool results share one user message, as in the published Qwen2.5 conversation", () => {
    const vector = published.find(({ model }) => model?.startsWith("Qwen/Qwen2.5"))!;
    const tokens = getRenderer("qwen3_instruct", tokenizer).buildSupervisedExample(vector.messages.map(toMessage), {
      trainOn: "all_tokens",
      tools: vector.tools as ToolDeclaration[],
    }).tokens;
    expect(`${tokenizer.decode(tokens)}\n`).toBe(vector.text);
  });

  test("the published loss masks agree, but for the newline after a message, which is never trained on", () => {
    const vector = published.find(({ assistant_mask_all }) => assistant_mask_all !== undefined)!;
    const messages = vector.messages.map(toMessage);
    const renderer = getRenderer("qwen3", tokenizer);
    // The masks of the source give a message's trailing newline the weight of the message.
    const afterEnd = (index: number) => index > 0 && vector.ids![index - 1] === tokenizer.tokenId("<|im_end|>");
    const expected = (mask: number[]) => mask.map((weight, index) => (afterEnd(index) ? 0 : weight)).slice(0, -1);
    const last = renderer.buildSupervisedExample(messages);
    expect(last.weights).toEqual(expected(vector.assistant_mask_final!));
    const all = renderer.buildSupervisedExample(messages, { trainOn: "all_assistant_messages" });
    expect(all.weights).toEqual(expected(vector.assistant_mask_all!));
    expect(all.warnings).toHaveLength(1);
  });
});

describe.skipIf(!sharedIsThere)("against the template itself, rendered here", () => {
  let tokenizer: Tokenizer;
  let template: Template;
  beforeAll(async () => {
    tokenizer = await loadTokenizer(qwen3Folder());
    template = new Template(tokenizer.chatTemplate!);
  });

  // Without markup, which is kept as text on purpose. Without blanks at the edges: content that begins with newlines is kept apart from its
  // header on purpose, and this interpreter's strip("\n") takes every blank where the reference implementation takes newlines.
  const text = fc
    .string({ unit: "binary", maxLength: 30 })
    .filter((value) => !/</.test(value) && value.trim() === value);
  const call = fc.record({
    name: fc.constantFrom("run", "look_up"),
    arguments: fc.dictionary(text, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
  });
  const user = text.map((content): WireMessage => ({ role: "user", content }));
  const tool = text.map((content): WireMessage => ({ role: "tool", content }));
  const assistant = fc
    .record({ content: text, reasoning: fc.option(text), calls: fc.array(call, { maxLength: 2 }) })
    .map(
      ({ content, reasoning, calls }): WireMessage => ({
        role: "assistant",
        content,
        ...(reasoning === null ? {} : { reasoning_content: reasoning }),
        // A round trip, so that both sides see plain JSON values.
        ...(calls.length === 0
          ? {}
          : { tool_calls: JSON.parse(JSON.stringify(calls.map((value) => ({ function: value })))) }),
      }),
    );
  const system = fc.option(text.filter(Boolean).map((content): WireMessage => ({ role: "system", content })));
  const conversations = fc
    .tuple(system, user, fc.array(fc.oneof(user, assistant, tool), { maxLength: 7 }))
    .map(([first, question, rest]) => [...(first ? [first] : []), question, ...rest]);
  const tools = fc.array(
    fc.record({ type: fc.constant("function"), function: fc.record({ name: text, description: text }) }),
    {
      maxLength: 2,
    },
  );

  test("any conversation gives the same ids", () => {
    fc.assert(
      fc.property(conversations, tools, fc.boolean(), (messages, declared, thinks) => {
        const expected = template.render({
          messages,
          tools: declared.length > 0 ? declared : null,
          add_generation_prompt: true,
          enable_thinking: thinks,
        });
        const renderer = getRenderer(thinks ? "qwen3" : "qwen3_disable_thinking", tokenizer);
        const tokens = renderer.buildGenerationPrompt(messages.map(toMessage), { tools: declared });
        // The tokenizer brings text into Unicode normal form C, on both sides.
        expect(tokenizer.decode(tokens)).toBe(expected.normalize("NFC"));
        expect(tokens).toEqual(tokenizer.encode(expected, { special: true }));
      }),
      { numRuns: 150 },
    );
  });
});

function toMessage(message: WireMessage): Message {
  return {
    role: message.role,
    content: message.content ?? "",
    ...(message.reasoning_content === undefined ? {} : { reasoning: message.reasoning_content }),
    ...(message.tool_calls
      ? {
          toolCalls: message.tool_calls.map((call) => ({
            name: call.function.name,
            arguments: call.function.arguments,
          })),
        }
      : {}),
  };
}

/** Tool declarations as JSON text, because their "default": 5.0 has no number in JavaScript that is spelled like it. */
function readKeepingFloats(path: string): unknown {
  const marked = readFileSync(path, "utf8").replaceAll(/("default":\s*)(\d+\.0)\b/g, '$1"FLOAT:$2"');
  return JSON.parse(marked, (key, value: unknown) =>
    key === "tools" && Array.isArray(value)
      ? value.map((tool) => JSON.stringify(tool).replaceAll(/"FLOAT:([^"]*)"/g, "$1"))
      : value,
  );
}
