// Random conversations, continued turn by turn with every template and format: what is sent is what was shown and sampled with the new
// messages behind it, and it says what the template gives for the whole conversation wherever that does not write anything anew.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { templatesAreThere, templateTokenizer, templateVectors, vectorsNow } from "../../test/data/templates.ts";
import { tinyTokenizerFolder } from "../../test/data/tiny-tokenizer.ts";
import { WhetstoneError } from "../core/errors.ts";
import { loadTokenizer } from "../tokenizer/index.ts";
import type { Message, RenderOptions, Thinking } from "./messages.ts";
import { getRenderer } from "./registry.ts";
import type { Renderer } from "./renderer.ts";
import { scaffoldless } from "./template/extend.ts";
import { TemplateRenderer } from "./template/template-renderer.ts";

/** Conversations for each template and way of thinking; WHETSTONE_EXTENSION_RUNS=500 looks harder. */
const runs = Number(process.env["WHETSTONE_EXTENSION_RUNS"] ?? 6);
const seed = Number(process.env["WHETSTONE_EXTENSION_SEED"] ?? 1);

const tools = ["look_up", "run"].map((name) => ({
  type: "function",
  function: {
    name,
    description: `Does ${name}.`,
    parameters: {
      type: "object",
      properties: { query: { type: "string", description: "What." } },
      required: ["query"],
    },
  },
}));

interface Exchange {
  answer: Message;
  added: Message[];
}

interface Talk {
  opening: Message[];
  exchanges: Exchange[];
  options: RenderOptions;
}

const word = fc.constantFrom(
  "alpha",
  "b c",
  "x = 1\n",
  "  indented",
  "é 漢",
  "<b>",
  "{}",
  "0",
  "<|im_end|>",
  "<tool_call>",
);
const text = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join(" "));
const said = fc.array(fc.constantFrom("alpha", "b c", "x = 1", "é 漢", "<b>", "</think>"), {
  minLength: 1,
  maxLength: 4,
});

function talks({ reasons, callsTools }: { reasons: boolean; callsTools: boolean }) {
  const reasoning = fc.option(
    text.map((thought) => thought.trim()),
    { nil: undefined },
  );
  const exchange = fc.record({ content: said, reasoning, calls: fc.nat(2), query: text, user: text }).map((made) => {
    const content = made.content.join(" ");
    const count = callsTools ? made.calls : 0;
    const toolCalls = Array.from({ length: count }, (_, index) => ({
      name: index === 0 ? "look_up" : "run",
      id: `call0000${index}`,
      arguments: { query: made.query },
    }));
    const answer: Message = { role: "assistant", content: count > 0 && made.user.length % 2 === 0 ? "" : content };
    if (reasons && made.reasoning !== undefined) answer.reasoning = made.reasoning;
    if (count > 0) answer.toolCalls = toolCalls;
    const results = toolCalls.map(({ id }): Message => ({ role: "tool", content: made.user, toolCallId: id }));
    return { answer, added: count > 0 ? results : [{ role: "user" as const, content: made.user }] };
  });
  return fc
    .record({
      system: fc.option(text, { nil: undefined }),
      user: text,
      exchanges: fc.array(exchange, { minLength: 1, maxLength: 5 }),
    })
    .map(({ system, user, exchanges }): Talk => {
      const first: Message[] = system === undefined ? [] : [{ role: "system", content: system }];
      const declared = exchanges.some(({ answer }) => answer.toolCalls) ? { tools } : {};
      return { opening: [...first, { role: "user", content: user }], exchanges, options: declared };
    });
}

interface Counts {
  extended: number;
  rewritten: number;
  refused: number;
  exact: number;
}

/** What a model would have sampled, as tokens and as the message that they are read as. */
function sample(renderer: Renderer, messages: readonly Message[], { answer, added }: Exchange, options: RenderOptions) {
  const { tokenizer } = renderer;
  const ended = (tokens: number[]) =>
    renderer instanceof TemplateRenderer && renderer.endOfTurn === undefined
      ? [...tokens, tokenizer.tokenId(added[0]!.role === "tool" ? "<|observation|>" : "<|user|>")!]
      : tokens;
  if (!answer.toolCalls) {
    const tokens = ended(writtenOut(renderer, answer));
    return { tokens, message: renderer.parseResponse(tokens).message };
  }
  // Calls as the template writes them, with as much beside them as it shows.
  const example = renderer.buildSupervisedExample([...messages, answer], options);
  const tokens = ended(example.tokens.slice(example.weights.indexOf(1)));
  return { tokens, message: renderer.parseResponse(tokens, options).message };
}

/** An answer without calls: its reasoning where the prompt asks for it, its text, its end. */
function writtenOut(renderer: Renderer, { content, reasoning }: Message): number[] {
  const { tokenizer } = renderer;
  if (!(renderer instanceof TemplateRenderer)) {
    const thought = reasoning === undefined ? "" : `<think>\n${reasoning}\n</think>\n\n`;
    if (typeof renderer.stop[0] === "string") return tokenizer.encode(` ${content}${renderer.stop[0]}`);
    return [...tokenizer.encode(thought + content), renderer.stop[0]!];
  }
  const { tags, tail } = renderer.reasoning;
  const marked = (text: string) => tokenizer.encode(text, { special: true });
  const end = renderer.endOfTurn === undefined ? [] : [tokenizer.tokenId(renderer.endOfTurn)!];
  const text = [...tokenizer.encode(content, { continues: true }), ...end];
  if (tokenizer.tokenId("<|channel|>") !== undefined) {
    const final = [...marked("<|channel|>final<|message|>"), ...text];
    if (reasoning === undefined) return final;
    const thought = [...marked("<|channel|>analysis<|message|>"), ...tokenizer.encode(reasoning)];
    return [...thought, ...marked("<|end|><|start|>assistant"), ...final];
  }
  if (!tags || tail === "closed" || (tail === "none" && reasoning === undefined)) return text;
  const open = tail === "open" ? [] : [...marked(tags.open), ...tokenizer.encode("\n")];
  return [...open, ...tokenizer.encode(reasoning ?? ""), ...marked(tags.close), ...tokenizer.encode("\n\n"), ...text];
}

/** Continues a conversation, answer by answer. */
function play(renderer: Renderer, { opening, exchanges, options }: Talk, counts: Counts): void {
  const bare = (tokens: readonly number[]) => {
    const decoded = renderer.tokenizer.decode(tokens);
    return renderer instanceof TemplateRenderer
      ? scaffoldless(renderer, decoded)
      : decoded.replaceAll(/<\/?think>|\s+/g, "");
  };
  let messages = opening;
  let path: number[] | undefined;
  for (const exchange of exchanges) {
    try {
      path ??= renderer.buildGenerationPrompt(messages, options);
      const { tokens: sampled, message } = sample(renderer, messages, exchange, options);
      const answered = [...messages, message];
      const { tokens: behind, rewritten } = renderer.extend(answered, sampled, exchange.added, options);
      messages = [...answered, ...exchange.added];
      const whole = renderer.buildGenerationPrompt(messages, options);
      const gone = behind && [...path, ...sampled, ...behind];
      if (gone && rewritten === undefined) {
        counts.extended++;
        expect(bare(gone)).toBe(bare(whole));
        if (renderer.tokenizer.decode(gone) === renderer.tokenizer.decode(whole)) counts.exact++;
        path = gone;
      } else {
        counts.rewritten++;
        expect(rewritten).toBeDefined();
        // Of an answer with a tag in it the tag alone may be what is left out.
        if (gone && !message.content.includes("</think>")) expect(bare(gone), rewritten).not.toBe(bare(whole));
        path = whole;
      }
    } catch (error) {
      // What a template refuses, and answers that its own prompt does not begin.
      if (!(error instanceof WhetstoneError)) throw error;
      counts.refused++;
      return;
    }
  }
}

function count(renderer: Renderer, reasons: boolean, callsTools: boolean): Counts {
  const counts = { extended: 0, rewritten: 0, refused: 0, exact: 0 };
  for (const talk of fc.sample(talks({ reasons, callsTools }), { numRuns: runs, seed })) play(renderer, talk, counts);
  return counts;
}

test("the formats made by hand", async () => {
  const chatml = await loadTokenizer(tinyTokenizerFolder());
  // Both that read reasoning take what looks like it out of an answer's text.
  for (const [name, reads] of [
    ["qwen3", true],
    ["qwen3_disable_thinking", true],
    ["qwen3_instruct", false],
    ["role_colon", false],
  ] as const) {
    const counts = count(getRenderer(name, chatml), name === "qwen3", false);
    if (process.env["WHETSTONE_EXTENSION_RUNS"]) console.log(name, JSON.stringify(counts));
    expect(counts.extended).toBeGreaterThan(0);
    expect(counts.refused).toBe(0);
    expect(counts.rewritten > 0).toBe(reads);
  }
});

const names = templatesAreThere ? Object.keys(templateVectors().templates) : [];

describe.skipIf(!templatesAreThere)("every template", () => {
  test.each(names)("%s", async (name) => {
    const tokenizer = await templateTokenizer(name);
    const { thinking } = new TemplateRenderer(tokenizer, { now: vectorsNow });
    for (const mode of Object.keys(thinking) as Thinking[]) {
      const renderer = new TemplateRenderer(tokenizer, { thinking: mode, now: vectorsNow });
      const reasons = mode !== "off";
      const plain = count(renderer, reasons, false);
      const calling = count(renderer, reasons, true);
      if (process.env["WHETSTONE_EXTENSION_RUNS"]) console.log(name, mode, JSON.stringify({ plain, calling }));
      expect(plain.extended + plain.rewritten + plain.refused).toBeGreaterThanOrEqual(runs);
      // Without reasoning and tools nothing is left out.
      if (mode === "off") expect(plain.extended).toBeGreaterThan(0);
    }
  });
});
