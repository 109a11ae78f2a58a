// The same training, whatever the parts: embedded, or a server and a sandbox started by someone else; and parts that go away for a while.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { startServe } from "../contract/serve-process.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { startSandbox } from "../support/sandbox-process.ts";
import { type SharedEngine, sharedEngine } from "../support/shared-engine.ts";
import { runWhet } from "../support/whet.ts";
import { expectNothingTwice, type Moment, momentOf } from "./killing.ts";

const newFolder = foldersInMemory();
const settings = [
  "max_steps=3",
  "max_lag=1",
  "save_every=1",
  "eval_every=0",
  "prompts_per_step=1",
  "completions_per_prompt=4",
  "max_tokens=64",
  "dashboard=false",
  "tensorboard=false",
];

/** Without what the clock or the price list decides: totals have whatever was sampled ahead by then. */
const metricsOf = (path: string) =>
  (readJsonLines(join(path, "metrics.jsonl")) as Record<string, unknown>[]).map((record) =>
    Object.fromEntries(
      Object.entries(record).filter(
        ([name]) => !/^(time|pipeline|journal|cost|grade\/(wall|queue|cached))|^tokens\/.*_total$/.test(name),
      ),
    ),
  );

/** How long parts stay away together; WHET_OUTAGE=30 waits longer. */
const outageMs = 1000 * Number(process.env["WHET_OUTAGE"] ?? 3);
const embedded = join(newFolder(), "run");
/** For those whose own is not what goes away. */
let standing: { server: SharedEngine; sandbox: Awaited<ReturnType<typeof startSandbox>> };
beforeAll(async () => {
  expect((await runCommand(["train", `log_path=${embedded}`, ...settings])).code).toBe(0);
  standing = { server: await sharedEngine(), sandbox: await startSandbox() };
});
afterAll(() => standing.sandbox.stop());

const names = ["server", "sandbox"] as const;

/** A server and a sandbox, of which those named are one's own, to be killed and started again. */
async function startParts(own: readonly (typeof names)[number][] = names) {
  const audit = join(newFolder(), "audit.jsonl");
  const engine = [`state_dir=${newFolder()}`, `audit=${audit}`];
  let [server, sandbox] = await Promise.all([
    own.includes("server") ? startServe(engine) : undefined,
    own.includes("sandbox") ? startSandbox() : undefined,
  ]);
  return {
    server: {
      kill: () => server!.child.kill("SIGKILL"),
      stop: () => server!.close(),
      again: async () => {
        await server!.close();
        server = await startServe([...engine, `port=${new URL(server!.baseUrl).port}`]);
      },
    },
    sandbox: {
      kill: () => sandbox!.child.kill("SIGKILL"),
      stop: () => sandbox!.stop(),
      again: async () => {
        sandbox = await startSandbox(sandbox!.port);
      },
    },
    audit,
    args: () => [`base_url=${(server ?? standing.server).baseUrl}`, ...settings],
    env: () => ({
      TINKER_API_KEY: (server ?? standing.server).apiKey,
      SANDBOX_URL: `${(sandbox ?? standing.sandbox).url}/run_code`,
    }),
    close: () => Promise.all([server?.close(), sandbox?.stop()]),
  };
}
type Parts = Awaited<ReturnType<typeof startParts>>;

/** A run; `leave` is called in its second step, `heard` gets what it says from then on. */
async function trainWithout(
  leave: () => unknown,
  parts: Parts,
  args: readonly string[],
  heard: (text: string) => void = () => {},
) {
  let left = false;
  return runWhet(["train", ...parts.args(), ...args], {
    env: parts.env(),
    onStart: (child) => {
      let text = "";
      child.stderr?.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        if (!left && text.includes("step   0")) {
          left = true;
          leave();
        }
        heard(text);
      });
    },
  });
}

const linesOf = (text: string, pattern: RegExp) => text.split("\n").filter((line) => pattern.test(line));

// Mostly waiting: all of them at once. Each ends with the metrics of the embedded run, though its server and sandbox are somewhere else.
describe.concurrent("an outage", { timeout: 240_000 }, () => {
  test("of both, which were stopped, is waited for, and nothing is scored 0 because of it", async () => {
    const path = join(newFolder(), "run");
    const parts = await startParts();
    const moments: Moment[] = [];
    const away = async () => {
      await Promise.all(names.map((name) => parts[name].stop()));
      moments.push(momentOf(path, parts.audit));
      await sleep(outageMs);
      await Promise.all(names.map((name) => parts[name].again()));
    };
    let outage: Promise<void> | undefined;
    const result = await trainWithout(() => (outage = away()), parts, [`log_path=${path}`]);
    expect(outage).toBeDefined();
    await outage;
    await parts.close();
    expect(result.stderr).toContain("3 steps in");
    expect(metricsOf(path)).toEqual(metricsOf(embedded));
    // By the server's own account: what was written down before it went away was not asked of it again, no update was applied twice.
    expect(moments[0]!.engineLines).toBeGreaterThan(0);
    expectNothingTwice(path, parts.audit, moments);
  });

  test.each(names)("of the %s is one line, and one when it is over; the run goes on", async (part) => {
    const path = join(newFolder(), "run");
    const parts = await startParts([part]);
    let again: Promise<void> | undefined;
    const result = await trainWithout(parts[part].kill, parts, [`log_path=${path}`], (text) => {
      if (/has given no answer/.test(text)) again ??= parts[part].again();
    });
    await again;
    await parts.close();
    expect(again).toBeDefined();
    expect(linesOf(result.stderr, /has given no answer for/).length).toBeLessThan(3);
    expect(linesOf(result.stderr, /no answer for .*tried again for up to 30 min more, then the run ends/)).not.toEqual(
      [],
    );
    expect(linesOf(result.stderr, /answers again after/)).toHaveLength(1);
    const others = /^warning: (?!The (Tinker server|sandbox) |this sandbox level lacks|the server lost the model)/;
    expect(linesOf(result.stderr, others)).toEqual([]);
    expect(result.code).toBe(0);
    expect(metricsOf(path)).toEqual(metricsOf(embedded));
  });

  test.each(names)(
    "of the %s that lasts longer than outage_patience ends the run, which can be resumed",
    async (part) => {
      const path = join(newFolder(), "run");
      const parts = await startParts([part]);
      const result = await trainWithout(parts[part].kill, parts, [`log_path=${path}`, "outage_patience=2"]);
      await parts[part].again();
      expect(result.stderr).toMatch(/\[(client\/connection|rl\/sandbox-away)\]\nTo go on:\n {2}\S+ resume \S+/);
      expect(result.code).toBe(1);
      const resumed = await runCommand(["resume", path], { env: parts.env() });
      await parts.close();
      expect(resumed.stderr).toContain("3 steps in");
      expect(metricsOf(path)).toEqual(metricsOf(embedded));
    },
  );
});
