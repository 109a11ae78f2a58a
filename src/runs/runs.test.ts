import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readJsonLines } from "../core/jsonl.ts";
import { appendCheckpoint, dropStepsFrom, readCheckpoints, resumableCheckpoints } from "./checkpoints.ts";
import { defaultRunPath, deleteRunDirectory, lockRunDirectory, openRunDirectory, writeRunConfig } from "./directory.ts";
import { bar, clock, Display, sparkline } from "./display.ts";
import { type Logger, RunLogger, redact } from "./log.ts";
import { type MetricsSink, SinkGroup } from "./sinks.ts";
import { crc32c, TensorBoardSink } from "./tensorboard.ts";
import { StepTimer } from "./timing.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "whet-runs-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const silent: Logger = { info() {}, warn() {}, error() {}, detail() {} };

describe("the run directory", () => {
  const runPath = () => join(folder, "run");
  const existingRun = () => {
    mkdirSync(runPath());
    writeRunConfig(runPath(), { model_name: "m" });
    return runPath();
  };

  test("is made where there is none", async () => {
    expect(await openRunDirectory(runPath(), "raise")).toBe("new");
    expect(existsSync(runPath())).toBe(true);
  });

  test("of a run that failed before it began is used again", async () => {
    mkdirSync(runPath());
    for (const name of ["logs.log", "metrics.jsonl", "timing.jsonl"]) writeFileSync(join(runPath(), name), "");
    expect(await openRunDirectory(runPath(), "raise")).toBe("new");
  });

  test("is resumed, deleted, refused or left alone, as asked", async () => {
    existingRun();
    expect(await openRunDirectory(runPath(), "resume")).toBe("resumed");
    expect(await openRunDirectory(runPath(), "ask", async () => "exit")).toBe("exit");
    expect(await openRunDirectory(runPath(), "ask")).toBe("resumed");
    await expect(openRunDirectory(runPath(), "raise")).rejects.toMatchObject({ code: "runs/exists" });
    writeFileSync(join(runPath(), "metrics.jsonl"), "{}\n");
    expect(await openRunDirectory(runPath(), "delete")).toBe("new");
    expect(readdirSync(runPath())).toEqual([]);
  });

  test("that is someone else's folder is never touched", async () => {
    mkdirSync(runPath());
    writeFileSync(join(runPath(), "thesis.tex"), "years of work");
    for (const behavior of ["ask", "resume", "delete", "raise"] as const)
      await expect(openRunDirectory(runPath(), behavior)).rejects.toMatchObject({ code: "runs/foreign-directory" });
    for (const path of ["/", process.cwd(), runPath()]) expect(() => deleteRunDirectory(path)).toThrow(/not deleted/);
    expect(readFileSync(join(runPath(), "thesis.tex"), "utf8")).toBe("years of work");
    writeFileSync(join(folder, "file"), "");
    await expect(openRunDirectory(join(folder, "file"), "delete")).rejects.toMatchObject({
      code: "runs/not-a-directory",
    });
  });

  test("is locked while a live process writes into it", () => {
    existingRun();
    const release = lockRunDirectory(runPath());
    expect(() => lockRunDirectory(runPath())).toThrow(`process ${process.pid}`);
    release();
    lockRunDirectory(runPath())();
    expect(existsSync(join(runPath(), "run.lock"))).toBe(false);
  });

  test("is named by the time and never collides", () => {
    const now = new Date(2026, 0, 2, 3, 4, 5);
    const first = defaultRunPath(now, folder);
    expect(first).toBe(join(folder, "code-rl-logs", "2026_01_02-03_04_05"));
    mkdirSync(first, { recursive: true });
    expect(defaultRunPath(now, folder)).toBe(`${first}-1`);
  });
});

describe("checkpoint records", () => {
  const record = (step: number, extra = {}) => ({
    name: String(step).padStart(6, "0"),
    step,
    batch: step,
    epoch: 0,
    dataset_offset: step * 8,
    kind: "both" as const,
    config_hash: "h",
    seed: 0,
    saved_at: "2026-01-01T00:00:00Z",
    ...extra,
  });

  test("come back newest first, only those with a state", () => {
    appendCheckpoint(folder, record(10, { state_path: "tinker://a/weights/000010" }));
    appendCheckpoint(folder, record(20, { state_path: "tinker://a/weights/000020" }));
    appendCheckpoint(folder, record(25, { sampler_path: "tinker://a/sampler_weights/x" }));
    expect(resumableCheckpoints(folder).map(({ step }) => step)).toEqual([20, 10]);
  });

  test("a corrupt line is named instead of being skipped", () => {
    writeFileSync(join(folder, "checkpoints.jsonl"), '{"name":"a"}\n{"name":\n{"name":"c"}\n');
    expect(() => readCheckpoints(folder)).toThrow(/line 2/);
  });

  test("steps that will be run again move to a backup", () => {
    const path = join(folder, "metrics.jsonl");
    writeFileSync(path, `${[0, 1, 2, 3].map((step) => `${JSON.stringify({ step })}\n`).join("")}{"step":4,"tor`);
    expect(dropStepsFrom(path, 2)).toBe(2);
    expect(readJsonLines(path)).toEqual([{ step: 0 }, { step: 1 }]);
    expect(readJsonLines(`${path}.bak`)).toEqual([{ step: 2 }, { step: 3 }]);
    expect(dropStepsFrom(path, 2)).toBe(0);
  });
});

describe("logging", () => {
  test("blanks secrets and credentials in URLs", () => {
    const environment = { TINKER_API_KEY: "tml-secret-value", HOME: "/home/someone" };
    const text = "key tml-secret-value at http://me:pw@host:1/x in /home/someone";
    expect(redact(text, environment)).toBe("key *** at http://***@host:1/x in /home/someone");
  });

  test("writes every line to the file and shows only what is meant to be shown", () => {
    const shown: string[] = [];
    const logger = new RunLogger(join(folder, "logs.log"), (line) => shown.push(line));
    logger.info("one");
    logger.detail("two");
    logger.warn("three");
    expect(shown).toEqual(["one", "three"]);
    const lines = readFileSync(join(folder, "logs.log"), "utf8").trimEnd().split("\n");
    expect(lines.map((line) => line.replace(/^\S+ /, ""))).toEqual(["[INFO] one", "[INFO] two", "[WARNING] three"]);
  });
});

describe("sinks", () => {
  test("a failing sink warns once and the others go on", async () => {
    const warnings: string[] = [];
    const broken: MetricsSink = { name: "broken", metrics: () => Promise.reject(new Error("down")), close() {} };
    const seen: number[] = [];
    const working: MetricsSink = { name: "working", metrics: (step) => void seen.push(step), close() {} };
    const group = new SinkGroup([broken, working], { ...silent, warn: (message) => warnings.push(message) });
    group.metrics(0, { loss: Number.NaN });
    await new Promise(setImmediate);
    group.metrics(1, { loss: 1 });
    await group.close();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("broken failed");
    expect(seen).toEqual([0, 1]);
  });

  test("the checksum is CRC-32C", () => expect(crc32c(Buffer.from("123456789"))).toBe(0xe3069283));

  test("an event file holds frames whose lengths add up", () => {
    const sink = new TensorBoardSink(folder);
    sink.metrics(300, { "reward/mean": 0.5, note: "text is left out" });
    sink.close();
    const bytes = readFileSync(join(folder, readdirSync(folder)[0]!));
    const lengths: number[] = [];
    for (let at = 0; at < bytes.length; ) {
      const length = Number(bytes.readBigUInt64LE(at));
      lengths.push(length);
      at += 12 + length + 4;
      expect(at).toBeLessThanOrEqual(bytes.length);
    }
    expect(lengths).toHaveLength(2);
    expect(bytes.includes("reward/mean")).toBe(true);
    expect(bytes.includes("note")).toBe(false);
  });
});

test("a timer gives single spans and repeated ones", async () => {
  const timer = new StepTimer();
  await timer.measure("train", async () => {});
  timer.add("grade", 0, 1000);
  timer.add("grade", 0, 3000);
  const metrics = timer.metrics();
  expect(metrics["time/train"]).toBeGreaterThanOrEqual(0);
  expect(metrics["time/grade:total"]).toBe(4);
  expect(metrics["time/grade:count"]).toBe(2);
  expect(metrics["time/grade:mean"]).toBe(2);
  expect(metrics["time/grade:max"]).toBe(3);
  expect(metrics["time/total"]).toBeGreaterThanOrEqual(0);
  // Spans longer than the timer has lived leave nothing uncovered.
  expect(metrics["time/other"]).toBe(0);
});

describe("the display", () => {
  test("keeps the live line under the messages on a terminal, and writes plain lines elsewhere", () => {
    let written = "";
    const display = new Display({ isTTY: true, columns: 20, write: (text) => (written += text) });
    display.status("a very long status line that is cut");
    display.line("message");
    display.end();
    expect(written).toBe("\r\u001b[2Ka very long status \r\u001b[2Kmessage\na very long status \r\u001b[2K");
    written = "";
    const plain = new Display({ write: (text) => (written += text) });
    plain.status("nothing");
    plain.line("message");
    plain.end();
    expect(written).toBe("message\n");
  });

  test("draws bars, clocks and sparklines", () => {
    expect(bar(5, 10, 4)).toBe("██░░");
    expect([clock(5), clock(65), clock(3725)]).toEqual(["0:05", "1:05", "1:02:05"]);
    expect(sparkline([0, undefined, 0.5, 1], 0, 1)).toBe("▁ ▅█");
    expect(sparkline([])).toBe("");
  });
});
