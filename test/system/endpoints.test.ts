// The same training, whatever the parts: embedded, or a server and a sandbox started by someone else; and parts that go away for a while.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { type ServeProcess, startServe } from "../contract/serve-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { startSandbox } from "../support/sandbox-process.ts";
import { runWhet } from "../support/whet.ts";
import { expectNothingTwice, type Moment, momentOf } from "./killing.ts";

const newFolder = foldersInMemory();
const settings = [
  "max_steps=3",
  "max_lag=1",
  "save_every=1",
  "eval_every=0",
  "prompts_per_step=2",
  "completions_per_prompt=4",
  "max_tokens=64",
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

/** How long parts stay away; WHET_OUTAGE=30 waits longer. */
const outageMs = 1000 * Number(process.env["WHET_OUTAGE"] ?? 6);
const embedded = join(newFolder(), "run");
beforeAll(async () => {
  expect((await runWhet(["train", `log_path=${embedded}`, ...settings])).code).toBe(0);
});

const stateDir = newFolder();
const audit = join(newFolder(), "audit.jsonl");
let server: ServeProcess;
let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  [server, sandbox] = await Promise.all([startServe([`state_dir=${stateDir}`, `audit=${audit}`]), startSandbox()]);
});
afterAll(async () => {
  await server?.close();
  await sandbox?.stop();
});

test("a separate server and a separate sandbox give the same metrics for the same seed", async () => {
  const apart = join(newFolder(), "run");
  const result = await runWhet(["train", `base_url=${server.baseUrl}`, `log_path=${apart}`, ...settings], {
    env: { TINKER_API_KEY: server.apiKey, SANDBOX_URL: `${sandbox.url}/run_code` },
  });
  expect(result.stderr).toContain("3 steps in");
  expect(metricsOf(apart)).toEqual(metricsOf(embedded));
});

test("a sandbox and a server that go away in the middle are waited for, and nothing is scored 0 because of it", async () => {
  const serverPort = new URL(server.baseUrl).port;
  const linesBefore = readJsonLines(audit).length;
  const path = join(newFolder(), "run");
  let outages: Promise<void> | undefined;
  const moments: Moment[] = [];
  const away = async () => {
    const port = sandbox.port;
    await sandbox.stop();
    await server.close();
    moments.push(momentOf(path, audit));
    await new Promise((resolve) => setTimeout(resolve, outageMs));
    [server, sandbox] = await Promise.all([
      startServe([`state_dir=${stateDir}`, `port=${serverPort}`, `audit=${audit}`]),
      startSandbox(port),
    ]);
  };
  const result = await runWhet(["train", `base_url=${server.baseUrl}`, `log_path=${path}`, ...settings], {
    env: { TINKER_API_KEY: server.apiKey, SANDBOX_URL: sandbox.url },
    onStart: (child) =>
      child.stderr?.on("data", (chunk: Buffer) => {
        // In the middle of the second step.
        if (chunk.toString().includes("step   0")) outages ??= away();
      }),
  });
  await outages;
  expect(outages).toBeDefined();
  expect(result.stderr).toContain("3 steps in");
  expect(metricsOf(path)).toEqual(metricsOf(embedded));
  // By the server's own account: what was written down before it went away was not asked of it again, no update was applied twice.
  expect(moments[0]!.engineLines).toBeGreaterThan(linesBefore);
  expectNothingTwice(path, audit, moments);
});

/** A server and a sandbox of one's own, to be killed and started again. */
async function startParts() {
  const stateDir = newFolder();
  let [server, sandbox] = await Promise.all([startServe([`state_dir=${stateDir}`]), startSandbox()]);
  return {
    server: {
      kill: () => server.child.kill("SIGKILL"),
      again: async () => {
        await server.close();
        server = await startServe([`state_dir=${stateDir}`, `port=${new URL(server.baseUrl).port}`]);
      },
    },
    sandbox: {
      kill: () => sandbox.child.kill("SIGKILL"),
      again: async () => {
        sandbox = await startSandbox(sandbox.port);
      },
    },
    args: () => [`base_url=${server.baseUrl}`, ...settings],
    env: () => ({ TINKER_API_KEY: server.apiKey, SANDBOX_URL: sandbox.url }),
    close: () => Promise.all([server.close(), sandbox.stop()]),
  };
}
type Parts = Awaited<ReturnType<typeof startParts>>;
const names = ["server", "sandbox"] as const;

/** A run whose part is killed in its second step; `heard` gets what it says from then on. */
async function trainWithout(
  part: (typeof names)[number],
  parts: Parts,
  args: readonly string[],
  heard: (text: string) => void = () => {},
) {
  let killed = false;
  return runWhet(["train", ...parts.args(), ...args], {
    env: parts.env(),
    onStart: (child) => {
      let text = "";
      child.stderr?.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        if (!killed && text.includes("step   0")) {
          killed = true;
          parts[part].kill();
        }
        heard(text);
      });
    },
  });
}

const linesOf = (text: string, pattern: RegExp) => text.split("\n").filter((line) => pattern.test(line));

// Mostly waiting: all of them at once.
describe.concurrent("an outage", () => {
  test.each(names)("of the %s is one line, and one when it is over; the run goes on", async (part) => {
    const path = join(newFolder(), "run");
    const parts = await startParts();
    let again: Promise<void> | undefined;
    const result = await trainWithout(part, parts, [`log_path=${path}`], (text) => {
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
    const complaints = /^warning: (?!The (Tinker server|sandbox) ).*(has failed|tried again|no answer|not ready)/;
    expect(linesOf(result.stderr, complaints)).toEqual([]);
    expect(result.code).toBe(0);
    expect(metricsOf(path)).toEqual(metricsOf(embedded));
  });

  test.each(names)(
    "of the %s that lasts longer than outage_patience ends the run, which can be resumed",
    async (part) => {
      const path = join(newFolder(), "run");
      const parts = await startParts();
      const result = await trainWithout(part, parts, [`log_path=${path}`, "outage_patience=2"]);
      await parts[part].again();
      expect(result.stderr).toMatch(/\[(client\/connection|rl\/sandbox-away)\]\nTo go on:\n {2}\S+ resume \S+/);
      expect(result.code).toBe(1);
      const resumed = await runWhet(["resume", path], { env: parts.env() });
      await parts.close();
      expect(resumed.stderr).toContain("3 steps in");
      expect(metricsOf(path)).toEqual(metricsOf(embedded));
    },
  );
});
