// A client that spells a conversation otherwise goes on from the same turn; one that changes a word does not.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Message, ToolCall } from "../renderers/index.ts";
import { argumentsText, callId, isSameJson, readMessages } from "./conversation.ts";
import { type KnownTurn, match } from "./match.ts";
import { readRequest, type WireMessage } from "./request.ts";

const json = fc.jsonValue({ maxDepth: 2 });
const text = fc.string({ unit: "grapheme", maxLength: 12 });
const said = (role: "system" | "user", content: string): Message => ({ role, content });

interface Drawn {
  system: string;
  turns: {
    user: string;
    content: string;
    reasoning: string;
    calls: { name: string; given: Record<string, unknown> }[];
    results: string[];
  }[];
}
const drawn: fc.Arbitrary<Drawn> = fc.record({
  system: text,
  turns: fc.array(
    fc.record({
      user: text,
      content: text,
      reasoning: text,
      calls: fc.array(
        fc.record({ name: fc.constantFrom("look", "find"), given: fc.dictionary(text, json, { maxKeys: 3 }) }),
        {
          maxLength: 3,
        },
      ),
      results: fc.array(text, { minLength: 3, maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 4 },
  ),
});

/** The turns of a conversation, as the endpoint keeps them. */
function nodesOf({ system, turns }: Drawn): KnownTurn[] {
  const nodes: KnownTurn[] = [];
  let history = [said("system", system)];
  for (const [index, { user, content, reasoning, calls, results }] of turns.entries()) {
    history.push(said("user", user));
    const made = calls.map(
      ({ name, given }, position): ToolCall => ({
        id: callId(index, position),
        name,
        arguments: JSON.stringify(given),
      }),
    );
    history = [...history, { role: "assistant", content, reasoning, toolCalls: made }];
    nodes.push({ index, messages: history });
    history = [
      ...history,
      ...made.map(({ id }, at): Message => ({ role: "tool", content: results[at]!, toolCallId: id! })),
    ];
  }
  return nodes;
}

type Spelling = { content: number; reasoning: number; spaced: boolean; turned: boolean };
const spelling: fc.Arbitrary<Spelling> = fc.record({
  content: fc.nat(2),
  reasoning: fc.nat(3),
  spaced: fc.boolean(),
  turned: fc.boolean(),
});

/** The conversation as some client writes it. */
function wire(conversation: readonly Message[], { content, reasoning, spaced, turned }: Spelling): WireMessage[] {
  const order = <Item>(items: readonly Item[]) => (turned ? items.toReversed() : [...items]);
  const messages: WireMessage[] = [];
  let results: WireMessage[] = [];
  for (const message of [...conversation, said("user", "?")]) {
    if (message.role === "tool") {
      results.push({ role: "tool", content: message.content, tool_call_id: message.toolCallId! });
      continue;
    }
    messages.push(...order(results));
    results = [];
    const parts = [...message.content].map((letter) => ({ type: "text", text: letter }));
    const spelled =
      message.content === "" ? [null, "", []][content]! : [message.content, parts, message.content][content]!;
    if (message.role !== "assistant") {
      messages.push({ role: message.role, content: spelled });
      continue;
    }
    const thought = message.reasoning ?? "";
    const moved =
      reasoning === 2 && !/<\/?think>/.test(thought)
        ? `<think>${thought}</think>\n\n${message.content}`
        : ` ${message.content}\n`;
    messages.push({
      role: "assistant",
      content: reasoning >= 2 ? moved : spelled,
      ...(reasoning === 1 && { reasoning_content: thought }),
      tool_calls: order(message.toolCalls ?? []).map((call) => ({
        id: call.id!,
        type: "function",
        function: {
          name: call.name,
          arguments: JSON.stringify(turnedAround(JSON.parse(argumentsText(call)), turned), null, spaced ? 2 : 0),
        },
      })),
    });
  }
  return messages.slice(0, -1).concat(results);
}

/** With the keys of objects the other way round. */
function turnedAround(value: unknown, turned: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => turnedAround(item, turned));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, turnedAround(item, turned)] as const);
  return Object.fromEntries(turned ? entries.toReversed() : entries);
}

test("whatever spelling a client has, it goes on from the turn that it means, and everything behind is new", () => {
  fc.assert(
    fc.property(drawn, spelling, fc.nat(), text, (conversation, spelled, at, next) => {
      const nodes = nodesOf(conversation);
      const meant = nodes[at % nodes.length]!;
      const sent = readMessages([...wire(meant.messages, spelled), { role: "user", content: next }]);
      const found = match(nodes, sent);
      expect(found.from).toBe(meant);
      expect(found.added).toEqual([said("user", next)].map((message) => expect.objectContaining(message)));
    }),
    { numRuns: 400 },
  );
});

test("an edited message goes on from the turn before it, or begins anew and says why", () => {
  fc.assert(
    fc.property(drawn, spelling, fc.nat(), (conversation, spelled, at) => {
      const nodes = nodesOf(conversation);
      const whole = nodes.at(-1)!.messages;
      const place = at % whole.length;
      const edited = whole.map((message, index) =>
        index === place ? { ...message, content: `${message.content}, edited` } : message,
      );
      const found = match(nodes, readMessages(wire(edited, { ...spelled, reasoning: 0 })));
      const before = nodes.findLast((node) => node.messages.length <= place);
      expect(found.from).toBe(before);
      expect(found.added).toHaveLength(whole.length - (before?.messages.length ?? 0));
      const others = whole.some(
        ({ role }, index) => role === "assistant" && index !== place && index >= (before?.messages.length ?? 0),
      );
      if (!before) expect(found.changed !== undefined).toBe(others);
      if (place === 0 && others) expect(found.changed).toBe("the system message is another");
    }),
    { numRuns: 400 },
  );
});

test("of two turns that say the same, the one that a call names is taken, then one that nothing went on from", () => {
  const call = (turn: number) => ({ id: callId(turn, 0), name: "look", arguments: "{}" });
  const answer = (toolCalls: ToolCall[]): Message => ({ role: "assistant", content: "Hello", toolCalls });
  const asked = said("user", "Hi");
  const byCall = [0, 1].map((index) => ({ index, messages: [asked, answer([call(index)])] }));
  expect(match(byCall, [asked, answer([call(1)]), asked]).from).toBe(byCall[1]);
  const plain = [0, 1].map((index) => ({ index, messages: [asked, answer([])] }));
  expect(match(plain, [asked, answer([]), asked]).from).toBe(plain[0]);
  expect(match(plain, [asked, answer([]), asked], ({ index }) => 1 - index).from).toBe(plain[1]);
});

test("arguments are the same JSON in any spelling of numbers and escapes, and only then", () => {
  expect(isSameJson('{"a": 1.0, "b": "\\u00e9"}', '{"b":"é","a":1}')).toBe(true);
  expect(isSameJson("12345678901234567890", "12345678901234567000")).toBe(true);
  expect(isSameJson("-0", "0")).toBe(true);
  expect(isSameJson("", "{}")).toBe(true);
  expect(isSameJson('{"a": 1}', '{"a": "1"}')).toBe(false);
  expect(isSameJson("no json", " no json")).toBe(true);
});

test.each([
  [{ messages: [] }, "endpoint/bad-request"],
  [
    { messages: [{ role: "user", content: "?" }], response_format: { type: "json_schema" } },
    "endpoint/response-format",
  ],
  [{ messages: [{ role: "user", content: "?" }], tool_choice: "required" }, "endpoint/tool-choice"],
])("%j is refused", (body, code) => {
  expect(() => readRequest(body)).toThrow(expect.objectContaining({ code, status: 400 }));
});

test("a picture is refused by name", () => {
  const { messages } = readRequest({
    messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "" } }] }],
  });
  expect(() => readMessages(messages)).toThrow('Message 0 has a part of type "image_url"');
});
