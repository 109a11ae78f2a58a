// Calls as each family's own template writes them, read back; and what is no call, which stays to be read.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { templatesAreThere, templateTokenizer, vectorsNow } from "../../test/data/templates.ts";
import { tinyTokenizerFolder } from "../../test/data/tiny-tokenizer.ts";
import { loadTokenizer } from "../tokenizer/index.ts";
import type { Message, ToolCall } from "./messages.ts";
import { getRenderer } from "./registry.ts";
import { TemplateRenderer } from "./template/template-renderer.ts";
import { callFormatOf } from "./tool-calls.ts";

const tools = [
  {
    type: "function",
    function: {
      name: "look_up",
      description: "Looks something up.",
      parameters: {
        type: "object",
        properties: {
          query: { type: "string" },
          count: { type: "integer" },
          exact: { type: "boolean" },
          places: { type: "array", items: { type: "string" } },
        },
        required: ["query"],
      },
    },
  },
];

/** Each template with the most calls that it writes in one answer. */
const families: readonly [template: string, most: number][] = [
  ["qwen3", 2],
  ["qwen3-instruct-2507", 2],
  ["qwen3-coder", 2],
  ["qwen3.5", 2],
  ["qwen3.6", 2],
  ["qwen3.8", 2],
  ["gpt-oss", 1],
  ["deepseek-v3.1", 2],
  ["deepseek-v3.2", 2],
  ["kimi-k2.5-k2.6", 2],
  ["glm-4.6", 2],
  ["llama-3.1", 1],
  ["mistral-small-3.2", 2],
  ["nemotron-3-nano", 2],
  ["nemotron-3-super", 2],
  ["nemotron-3-ultra", 2],
];

const open = async (name: string) => new TemplateRenderer(await templateTokenizer(name), { now: vectorsNow });

/** Queries that quote marks of calls; what a family writes as bare text cannot hold its own tags. */
const query = fc.constantFrom(
  "tea",
  "5",
  "true",
  '{"a": 1}',
  "two\nlines",
  'a "quoted" \\ é 漢',
  "[ARGS]{}",
  "to=functions.run",
);
const call = fc
  .record({
    query,
    count: fc.nat(9),
    exact: fc.boolean(),
    places: fc.array(fc.constantFrom("here", "there"), { maxLength: 2 }),
  })
  .map((parameters): ToolCall => ({ name: "look_up", arguments: parameters }));

describe.skipIf(!templatesAreThere)("calls as the template writes them", () => {
  test.each(families)("%s", async (name, most) => {
    const renderer = await open(name);
    const asked: Message = { role: "user", content: "Where is tea?" };
    for (const calls of fc.sample(fc.array(call, { minLength: 1, maxLength: most }), { numRuns: 20, seed: 7 })) {
      const toolCalls = calls.map((each, index) => ({
        ...each,
        id: name.startsWith("kimi") ? `functions.look_up:${index}` : `call0000${index}`,
      }));
      const answer: Message = { role: "assistant", content: "", toolCalls };
      const { tokens, weights } = renderer.buildSupervisedExample([asked, answer], { tools });
      const { message } = renderer.parseResponse(tokens.slice(weights.indexOf(1)), { tools });
      expect(message.unparsedToolCalls).toBeUndefined();
      expect(message.toolCalls?.map(({ name, arguments: given }) => ({ name, arguments: given }))).toEqual(calls);
      expect(message.content.trim()).toBe("");
    }
  });

  test("a call that is cut off, or says nothing, is kept as it stands", async () => {
    const broken: [template: string, written: string, kept: string][] = [
      ["qwen3", '<tool_call>\n{"name": "look_up", "arguments"', '{"name": "look_up", "arguments"'],
      ["qwen3", '<tool_call>\n{"name": 3}\n</tool_call>', '{"name": 3}'],
      ["qwen3-coder", "<tool_call>\n<function=look_up>\nwhat\n</function>\n</tool_call>", "what"],
      ["deepseek-v3.1", "<｜tool▁call▁begin｜>look_up<｜tool▁sep｜>{oh<｜tool▁call▁end｜>", "{oh"],
      ["kimi-k2.5-k2.6", "<|tool_call_begin|>functions.look_up:0<|tool_call_end|>", "functions.look_up:0"],
      ["glm-4.6", "<tool_call>look_up\n<arg_key>query</arg_key>\n</tool_call>", "<arg_key>query</arg_key>"],
      ["mistral-small-3.2", "[TOOL_CALLS]look_up[ARGS]{", "look_up[ARGS]{"],
      ["gpt-oss", "<|channel|>commentary to=functions.look_up<|message|>{", "to=functions.look_up"],
    ];
    for (const [name, written, kept] of broken) {
      const renderer = await open(name);
      const thought = renderer.reasoning.tail === "open" ? "</think>" : "";
      const { message } = renderer.parseResponse(renderer.tokenizer.encode(thought + written, { special: true }));
      expect(message.toolCalls, name).toBeUndefined();
      expect(message.unparsedToolCalls?.join(), name).toContain(kept);
    }
  });

  test("marks that an answer only spells are text", async () => {
    for (const [name, mark] of [
      ["qwen3", "<tool_call>"],
      ["glm-4.6", "<tool_call>"],
      ["kimi-k2.5-k2.6", "<|tool_call_begin|>"],
      ["mistral-small-3.2", "[TOOL_CALLS]"],
      ["deepseek-v3.1", "<｜tool▁call▁begin｜>"],
    ] as const) {
      const renderer = await open(name);
      const quoted = `Write ${mark} to call.`;
      const begins = renderer.reasoning.tail === "open" ? "</think>" : "";
      // In two pieces: some tokenizers take the mark for the token wherever it stands.
      const cut = quoted.indexOf(mark) + 3;
      const tokens = [begins + quoted.slice(0, cut), quoted.slice(cut)].flatMap((piece, index) =>
        renderer.tokenizer.encode(piece, { continues: index > 0 }),
      );
      expect(renderer.parseResponse(tokens).message, name).toEqual({ role: "assistant", content: quoted });
    }
  });

  test("whatever is sampled, nothing is thrown and no text is lost", async () => {
    for (const [name] of families) {
      const renderer = await open(name);
      const { tokenizer } = renderer;
      const marks = tokenizer.addedTokens.map(({ id }) => id).filter((id) => !renderer.stop.includes(id));
      const words = ["one", "two", '{"name": "f", "arguments": {}}', "<function=f>", "</function>", "functions.f:0"];
      const piece = fc.oneof(fc.constantFrom(...words), fc.constantFrom(...marks));
      fc.assert(
        fc.property(fc.array(piece, { maxLength: 9 }), (pieces) => {
          const tokens = pieces.flatMap((each) => (typeof each === "number" ? [each] : tokenizer.encode(each)));
          const { message } = renderer.parseResponse(tokens, { tools });
          const kept = JSON.stringify(message);
          for (const each of ["one", "two"]) {
            // A word in the header of a channel names the channel and is no text.
            const isHeader = name === "gpt-oss" && pieces.some((piece) => typeof piece === "number");
            if (pieces.includes(each) && !isHeader) expect(kept).toContain(each);
          }
        }),
        { numRuns: 100, seed: 11 },
      );
    }
  });
});

test("a model without a template writes JSON between tags", async () => {
  const renderer = getRenderer("qwen3_instruct", await loadTokenizer(tinyTokenizerFolder()));
  const text = 'So:\n<tool_call>\n{"name": "run", "arguments": {"a": 1}}\n</tool_call>';
  expect(renderer.parseResponse(renderer.tokenizer.encode(text)).message).toEqual({
    role: "assistant",
    content: "So:",
    toolCalls: [{ name: "run", arguments: { a: 1 } }],
  });
});

test("Llama's bare JSON is a call only where it is the whole answer", () => {
  const { readWhole } = callFormatOf("<|python_tag|>");
  const one = '{"name": "f", "parameters": {"a": 1}}';
  expect(readWhole!(one)).toEqual([{ name: "f", arguments: { a: 1 } }]);
  expect(readWhole!(`${one}; ${one}`)).toHaveLength(2);
  expect(readWhole!(`Like this: ${one}`)).toBeUndefined();
});
