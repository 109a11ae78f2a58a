// `kill -9` at random moments, each followed by the same command: nothing is lost, nothing is done twice, and the adapter is in the end
// bit for bit that of a run nobody touched. WHET_KILLS sets the number of kills (default 3; 50 is a thorough run).
import type { ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { Random } from "../../src/core/random.ts";
import { temporaryFolders } from "../support/folders.ts";
import { runWhet } from "../support/whet.ts";

const newFolder = temporaryFolders();
const kills = Number(process.env["WHET_KILLS"] ?? 3);
const steps = 6;
const settings = [
  `max_steps=${steps}`,
  "save_every=2",
  "eval_every=0",
  "batch_size=16",
  "group_size=4",
  "max_tokens=64",
  "tensorboard=false",
];

/** Runs the command; kills it after `killAfterMs` when given. Returns its exit code, null when killed. */
async function train(path: string, killAfterMs?: number): Promise<number | null> {
  let timer: NodeJS.Timeout | undefined;
  const kill = (child: ChildProcess) => {
    if (killAfterMs !== undefined) timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  };
  const result = await runWhet(["train", `log_path=${path}`, ...settings], { onStart: kill });
  clearTimeout(timer);
  if (result.code !== 0 && result.signal !== "SIGKILL") throw new Error(result.stderr);
  return result.code;
}

/** The metrics without what depends on the clock and on what was graded before. */
function metricsOf(path: string): Record<string, unknown>[] {
  return (readJsonLines(join(path, "metrics.jsonl")) as Record<string, unknown>[]).map((record) =>
    Object.fromEntries(Object.entries(record).filter(([name]) => !/^(time|grade)\//.test(name))),
  );
}

/** The hash of the final adapter's weights, found through the run's last checkpoint record: a kill may leave others, unrecorded. */
function finalAdapter(path: string): string {
  const last = readJsonLines(join(path, "checkpoints.jsonl")).at(-1) as { name: string; sampler_path: string };
  expect(last.name).toBe("final");
  const [model, ...rest] = last.sampler_path.replace("tinker://", "").split("/");
  const folder = join(path, "engine", "checkpoints", encodeURIComponent(model!), ...rest);
  const [file, ...others] = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith("adapter_model.safetensors"),
  );
  expect(others).toEqual([]);
  return createHash("sha256")
    .update(readFileSync(join(folder, file!)))
    .digest("hex");
}

test(`runs killed ${kills} times in all end exactly like one that was left alone`, {
  timeout: 60_000 * (kills + 4),
}, async () => {
  const calm = join(newFolder(), "calm");
  const started = performance.now();
  expect(await train(calm)).toBe(0);
  const wholeMs = performance.now() - started;

  const random = new Random("kills", process.env["WHET_SEED"] ?? 0);
  let killed = 0;
  while (killed < kills) {
    const troubled = join(newFolder(), "troubled");
    do {
      // Anywhere from before the run began to just before its end.
      if (killed === kills) expect(await train(troubled)).toBe(0);
      else if ((await train(troubled, 200 + random.float() * wholeMs)) === null) killed++;
      const records = existsSync(join(troubled, "metrics.jsonl")) ? metricsOf(troubled) : [];
      expect(records.map(({ step }) => step)).toEqual(records.map((_, index) => index));
    } while (!existsSync(join(troubled, "summary.json")));
    expect(await train(troubled)).toBe(0);
    expect(metricsOf(troubled)).toEqual(metricsOf(calm));
    expect(finalAdapter(troubled)).toBe(finalAdapter(calm));
  }
  expect(metricsOf(calm)).toHaveLength(steps);
});

test("Ctrl-C saves and ends with 130, and the same command goes on from there", async () => {
  const calm = join(newFolder(), "calm");
  expect(await train(calm)).toBe(0);
  const path = join(newFolder(), "run");
  let interrupted = false;
  const result = await runWhet(["train", `log_path=${path}`, ...settings], {
    onStart: (child) => {
      child.stderr?.on("data", (chunk: Buffer) => {
        if (!interrupted && chunk.toString().includes("step   2")) {
          interrupted = true;
          // The launcher replaces itself by node, so this is the process that trains.
          child.kill("SIGINT");
        }
      });
    },
  });
  expect(result.stderr).toContain("everything is saved");
  expect(result.code).toBe(130);
  expect(await train(path)).toBe(0);
  expect(metricsOf(path)).toEqual(metricsOf(calm));
  expect(finalAdapter(path)).toBe(finalAdapter(calm));
});
