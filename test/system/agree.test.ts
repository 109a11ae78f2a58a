// The question before a run that is billed, on a real terminal, and what is said where there is none.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runCommand } from "../support/command-process.ts";
import { type LoopRig, loopRig, newFolder } from "../support/loop-rig.ts";
import { hasTerminal, onTerminal } from "../support/terminal.ts";

const prices = ["price_prefill=1", "price_sample=10", "price_train=5"];
const small = [
  "preset=nano",
  "eval_every=0",
  "prompts_per_step=2",
  "completions_per_prompt=4",
  "max_tokens=12",
  "dashboard=false",
];
const env = { TINKER_API_KEY: "tml-test" };
const question = "Write yes: ";
const args = (rig: LoopRig, path: string, ...more: string[]) =>
  ["train", `base_url=${rig.url}`, `log_path=${path}`, ...small, ...prices, "max_steps=1", ...more] as const;
const wasAsked = (rig: LoopRig) => existsSync(join(rig.stateDir, "audit.jsonl")) && rig.audit().length > 0;

test.runIf(hasTerminal).each([
  ["no", "no\r"],
  ["Enter", "\r"],
  ["Ctrl-C", "\u0003"],
  ["Ctrl-D", "\u0004"],
])("%s leaves nothing behind, here or on the server", async (_, keys) => {
  const rig = await loopRig();
  const home = newFolder();
  const path = join(home, "run");
  const { code, output } = await onTerminal(args(rig, path), { question, keys, env: { ...env, HOME: home } });
  expect(output).toMatch(/cost: at most \$[\d.]+ a step, \$[\d.]+ in all/);
  expect(output).toContain("budget=USD saves and stops before more is spent");
  expect(output).toContain("nothing was billed");
  expect(output).not.toMatch(/\n\s+at |unsettled/);
  expect([code, wasAsked(rig)]).toEqual([0, false]);
  expect(readdirSync(home)).toEqual([]);
});

test.runIf(hasTerminal)(
  "yes begins it; going on is asked about only where it may cost more",
  async () => {
    const rig = await loopRig();
    const path = join(newFolder(), "run");
    const run = (keys: string, ...more: string[]) => onTerminal(args(rig, path, ...more), { question, keys, env });
    const goOn = (keys: string, ...more: string[]) => onTerminal(["resume", path, ...more], { question, keys, env });
    const asked = (output: string) => output.split(question).length - 1;
    const first = await run("yes\r");
    expect([first.code, asked(first.output)], first.output).toEqual([0, 1]);

    const over = await run("");
    expect(over.output).toContain("this run is finished");
    expect([asked(over.output), over.output.includes("at most $")]).toEqual([0, false]);

    const events = readFileSync(join(path, "config.json"), "utf8");
    const refused = await goOn("no\r", "max_steps=2");
    expect([refused.code, asked(refused.output)], refused.output).toEqual([0, 1]);
    expect(readFileSync(join(path, "config.json"), "utf8")).toBe(events);

    // With a budget the run may cost that, however many steps it has.
    const capped = await goOn("yes\r", "max_steps=2", "budget=0.5");
    expect([capped.code, asked(capped.output)], capped.output).toEqual([0, 1]);
    const same = await goOn("", "max_steps=3", "budget=0.5");
    expect([same.code, asked(same.output)], same.output).toEqual([0, 0]);
    const larger = await goOn("yes\r", "max_steps=4", "budget=0.6");
    expect([larger.code, asked(larger.output)], larger.output).toEqual([0, 1]);
  },
  180_000,
);

test.runIf(hasTerminal)("with a key alone it is asked before anything goes out to the hosted service", async () => {
  const home = newFolder();
  // Nothing could be reached: nothing is tried.
  const options = { question, keys: "no\r", env: { TINKER_API_KEY: "tml-x", HOME: home } };
  const { code, output } = await onTerminal(["train"], options);
  expect(output).toMatch(/at most \$3\.\d+ a step \(hosted Tinker's prices of/);
  expect(output).toContain("max_steps=-1: it has no end of its own");
  expect([code, readdirSync(home)]).toEqual([0, []]);
  const unknown = await onTerminal(["train", "model_name=owner/other", "budget=5"], options);
  expect([unknown.code, unknown.output.includes(question)]).toEqual([2, false]);
});

test("yes=true, and no terminal, begin without a question; the cost is said", async () => {
  const rig = await loopRig();
  for (const more of [[], ["yes=true"]]) {
    const result = await runCommand(args(rig, join(newFolder(), "run"), ...more), { env });
    expect(result, result.stderr).toMatchObject({ code: 0 });
    expect(result.stderr).toMatch(/cost: at most \$/);
    expect(result.stderr).not.toContain(question);
  }
  if (!hasTerminal) return;
  const { code, output } = await onTerminal(args(rig, join(newFolder(), "run"), "yes=true"), {
    question,
    keys: "",
    env,
  });
  expect([code, output.includes(question)], output).toEqual([0, false]);
}, 120_000);

test("what costs nothing says and asks nothing", async () => {
  const rig = await loopRig();
  const free = args(rig, join(newFolder(), "run")).filter((word) => !word.startsWith("price_"));
  const { code, stderr } = await runCommand(free, { env });
  expect([code, stderr.includes("at most $")], stderr).toEqual([0, false]);
}, 60_000);
