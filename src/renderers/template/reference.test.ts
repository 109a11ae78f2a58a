// Random conversations, rendered here and by transformers' own apply_chat_template: the newest that can be installed.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import {
  controlTokensOf,
  templateSource,
  templatesAreThere,
  templateVectors,
  vectorsNow,
} from "../../../test/data/templates.ts";
import { suiteVenv, type Venv } from "../../../test/support/venv.ts";
import { ChatTemplate } from "./jinja.ts";
import { type JsonValue, parseJson } from "./json-values.ts";

const script = fileURLToPath(new URL("../../../test/support/render_reference.py", import.meta.url));
/** Conversations per template; WHETSTONE_TEMPLATE_RUNS=1000 looks harder. */
const runs = Number(process.env["WHETSTONE_TEMPLATE_RUNS"] ?? 40);
const seed = Number(process.env["WHETSTONE_TEMPLATE_SEED"] ?? 1);

interface Request {
  messages: object[];
  tools?: object[];
  template: string;
  add_generation_prompt: boolean;
  special_tokens: Record<string, string>;
  settings: Record<string, unknown>;
}

type Answer = { text: string } | { error: string; message: string };

/** What the reference makes of the requests. */
function askReference(python: string, requests: readonly Request[]): Answer[] {
  const input = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
  const { stdout, stderr, status } = spawnSync(python, [script], { input, encoding: "utf8", maxBuffer: 2 ** 30 });
  if (status !== 0) throw new Error(stderr);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Answer);
}

function renderHere(template: ChatTemplate, request: Request): Answer {
  const spelled = parseJson(JSON.stringify(request), "a request") as Map<string, JsonValue>;
  const messages = (spelled.get("messages") as Map<string, JsonValue>[]).map((message) => {
    const reasoning = message.get("reasoning_content");
    return reasoning === undefined ? message : new Map([...message, ["thinking", reasoning], ["reasoning", reasoning]]);
  });
  try {
    const rendered = template.render({
      messages,
      tools: spelled.get("tools") as unknown[] | undefined,
      addGenerationPrompt: request.add_generation_prompt,
      settings: request.settings,
    });
    return { text: template.controls.plain(rendered) };
  } catch (error) {
    return { error: "", message: (error as Error).message };
  }
}

/** Requests for one template: plain and hostile texts, every order of roles, reasoning, tools, the switches it reads. */
function requestsFor(name: string, template: ChatTemplate): Request[] {
  const markup = [...controlTokensOf(name), "<think>", "</think>", "<tool_response>", "</tool_response>", "/nothink"];
  const blanks = ["\n", " ", "\t", "\u00a0", "\u3000", "\ufeff", "\u0085", "\u001c", "\u200b", "\r\n"];
  const piece = fc.oneof(
    { weight: 4, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
    { weight: 2, arbitrary: fc.constantFrom(...markup) },
    { weight: 2, arbitrary: fc.constantFrom(...blanks) },
    { weight: 1, arbitrary: fc.constantFrom("\uF600\uF601", "\uF5FD", "\uF5FE", "def f():\n    return {}", "{{ x }}") },
  );
  const text = fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.join(""));
  const json = fc.dictionary(text, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 });
  const call = fc.record({ name: fc.constantFrom("run", "look_up"), arguments: json }).map((value) => ({
    id: `functions.${value.name}:0`,
    type: "function",
    function: value,
  }));
  const message = fc.oneof(
    { weight: 4, arbitrary: text.map((content): object => ({ role: "user", content })) },
    {
      weight: 4,
      arbitrary: fc
        .record({ content: text, reasoning_content: fc.option(text, { nil: undefined }) })
        .map((value): object => ({ role: "assistant", ...value })),
    },
    {
      weight: 1,
      arbitrary: fc
        .array(call, { minLength: 1, maxLength: 2 })
        .map((calls): object => ({ role: "assistant", content: "", tool_calls: calls })),
    },
    {
      weight: 1,
      arbitrary: text.map((content): object => ({
        role: "tool",
        content,
        name: "run",
        tool_call_id: "functions.run:0",
      })),
    },
    { weight: 1, arbitrary: text.map((content): object => ({ role: "system", content })) },
  );
  const system = fc.option(
    text.map((content): object => ({ role: "system", content })),
    { nil: undefined },
  );
  const ordinary = fc.array(fc.tuple(text, text), { maxLength: 2 }).map((turns): object[] =>
    turns.flatMap(([user, answer]) => [
      { role: "user", content: user },
      { role: "assistant", content: answer },
    ]),
  );
  const conversation = fc
    .tuple(
      system,
      fc.oneof({ weight: 2, arbitrary: ordinary }, { weight: 3, arbitrary: fc.array(message, { maxLength: 6 }) }),
      text,
    )
    .map(([first, rest, last]): object[] => [...(first ? [first] : []), ...rest, { role: "user", content: last }]);
  const tool = fc.record({
    type: fc.constant("function"),
    function: fc.record({
      name: fc.constantFrom("run", "look_up"),
      description: text,
      parameters: fc.constant({
        type: "object",
        properties: { path: { type: "string", description: "é" } },
        required: ["path"],
      }),
    }),
  });
  const switches = [
    "enable_thinking",
    "thinking",
    "preserve_thinking",
    "low_effort",
    "medium_effort",
    "truncate_history_thinking",
  ];
  const settings = fc
    .record(
      Object.fromEntries(
        switches
          .filter((key) => template.variables.has(key))
          .map((key) => [key, fc.option(fc.boolean(), { nil: undefined })]),
      ),
    )
    .map((record) => JSON.parse(JSON.stringify(record)) as Record<string, unknown>);
  const request = fc.record({
    messages: fc.oneof(
      { weight: 5, arbitrary: conversation },
      { weight: 1, arbitrary: fc.array(message, { minLength: 1, maxLength: 5 }) },
    ),
    tools: fc.option(fc.array(tool, { minLength: 1, maxLength: 2 }), { nil: undefined, freq: 5 }),
    add_generation_prompt: fc.boolean(),
    settings,
  });
  const shared = { template: templateSource(name), special_tokens: templateVectors().templates[name]!.special_tokens };
  // A round trip, so that both sides read the same JSON.
  return fc
    .sample(request, { numRuns: runs, seed })
    .map((sample) => JSON.parse(JSON.stringify({ ...sample, ...shared })) as Request);
}

describe.skipIf(!templatesAreThere)("against transformers", () => {
  let venv: Venv;
  beforeAll(async () => {
    venv = await suiteVenv();
    if ("missing" in venv) console.warn(`skipping the comparison with transformers: ${venv.missing}`);
  }, 300_000);

  test("random conversations give the same text, or fail on both sides", { timeout: 300_000 }, (context) => {
    if ("missing" in venv) return context.skip();
    const all = Object.keys(templateVectors().templates).flatMap((name) => {
      const template = new ChatTemplate(templateSource(name), {
        name,
        controlTokens: controlTokensOf(name),
        specialTokens: templateVectors().templates[name]!.special_tokens,
        now: vectorsNow,
      });
      return requestsFor(name, template).map((request) => ({ name, template, request }));
    });
    const expected = askReference(
      venv.python,
      all.map(({ request }) => request),
    );
    const different: unknown[] = [];
    let texts = 0;
    for (const [index, { name, template, request }] of all.entries()) {
      const theirs = expected[index]!;
      const ours = renderHere(template, request);
      if ("text" in theirs && "text" in ours) texts++;
      const same = "text" in theirs ? "text" in ours && ours.text === theirs.text : "error" in ours;
      if (!same) different.push({ name, ...firstDifference(theirs, ours), request: JSON.stringify(request.messages) });
    }
    expect(different.slice(0, 5)).toEqual([]);
    expect(different).toHaveLength(0);
    // Most conversations are ones that a template accepts.
    expect(texts / all.length).toBeGreaterThan(0.6);
    console.log(`${texts} texts of ${all.length} conversations are the reference's; the others are refused by both`);
  });
});

/** What stands where two texts part. */
function firstDifference(theirs: Answer, ours: Answer): object {
  if (!("text" in theirs) || !("text" in ours)) return { theirs, ours };
  let index = 0;
  while (theirs.text[index] === ours.text[index]) index++;
  const around = (text: string) => text.slice(Math.max(0, index - 40), index + 60);
  return { theirs: around(theirs.text), ours: around(ours.text) };
}
