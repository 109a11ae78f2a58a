import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { whet } from "../core/program.ts";
import { readCheckpoints } from "./checkpoints.ts";
import { defaultRunPath, emptyRunDirectory, keepConfig, lockRunDirectory, openRunDirectory } from "./directory.ts";
import { bar, clock, Display, sparkline } from "./display.ts";
import { RunLogger, redact } from "./log.ts";
import { crc32c, TensorBoardSink } from "./tensorboard.ts";
import { coveredMs, spanMetrics } from "./timing.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "whet-runs-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the run directory", () => {
  const runPath = () => join(folder, "run");
  const existingRun = () => {
    mkdirSync(runPath());
    keepConfig(runPath(), { model_name: "m" }, 0);
    return runPath();
  };
  /** Opens it, lets go of it, and says what it was. */
  const open = async (...options: Parameters<typeof openRunDirectory>) => {
    const opened = await openRunDirectory(...options);
    opened?.release();
    return opened?.state;
  };

  test("is made where there is none, and gone again when nothing was written", async () => {
    const path = join(runPath(), "a/b");
    const opened = await openRunDirectory(path, "raise");
    expect(opened?.state).toBe("new");
    expect(existsSync(path)).toBe(true);
    opened?.release();
    expect(existsSync(runPath())).toBe(false);
  });

  test("of a run that failed before it began is used again", async () => {
    mkdirSync(runPath());
    for (const name of ["logs.log", "metrics.jsonl", "timing.jsonl", "checkpoints.jsonl"])
      writeFileSync(join(runPath(), name), "");
    mkdirSync(join(runPath(), "journal"));
    // A kill may come while the lock is taken, or while config.json is written.
    for (const name of ["run.lock.4711-0", "config.json.4711.part"]) writeFileSync(join(runPath(), name), "");
    expect(await open(runPath(), "raise")).toBe("new");
  });

  test("is resumed, deleted, refused or left alone, as asked", async () => {
    existingRun();
    expect(await open(runPath(), "resume")).toBe("resumed");
    expect(await open(runPath(), "ask", async () => "exit")).toBe(undefined);
    expect(await open(runPath(), "ask")).toBe("resumed");
    await expect(open(runPath(), "raise")).rejects.toMatchObject({ code: "runs/exists" });
    writeFileSync(join(runPath(), "metrics.jsonl"), "{}\n");
    expect(await open(runPath(), "delete")).toBe("new");
    expect(readdirSync(runPath())).toEqual([]);
  });

  test("is taken before it is deleted: a live run's folder stays as it is", async () => {
    existingRun();
    const release = lockRunDirectory(runPath());
    await expect(open(runPath(), "delete")).rejects.toMatchObject({ code: "runs/locked" });
    expect(readdirSync(runPath()).sort()).toEqual(["config.json", "run.lock"]);
    release();
  });

  test("with anything in it that no run writes is not deleted, whatever its config.json says", async () => {
    existingRun();
    writeFileSync(join(runPath(), "thesis.tex"), "years of work");
    await expect(open(runPath(), "delete")).rejects.toMatchObject({ code: "runs/delete-refused" });
    expect(readdirSync(runPath()).sort()).toEqual(["config.json", "thesis.tex"]);
  });

  test("that is someone else's folder is never touched", async () => {
    mkdirSync(runPath());
    writeFileSync(join(runPath(), "thesis.tex"), "years of work");
    for (const behavior of ["ask", "resume", "delete", "raise"] as const)
      await expect(open(runPath(), behavior)).rejects.toMatchObject({ code: "runs/foreign-directory" });
    for (const path of ["/", process.cwd(), runPath()]) expect(() => emptyRunDirectory(path)).toThrow(/not deleted/);
    expect(readFileSync(join(runPath(), "thesis.tex"), "utf8")).toBe("years of work");
    writeFileSync(join(folder, "file"), "");
    await expect(open(join(folder, "file"), "delete")).rejects.toMatchObject({ code: "runs/not-a-directory" });
  });

  test("keeps every config it ever had", () => {
    existingRun();
    keepConfig(runPath(), { model_name: "m" }, 1);
    keepConfig(runPath(), { model_name: "m", learning_rate: 2 }, 2);
    expect(readdirSync(runPath()).sort()).toEqual(["config-001.json", "config.json"]);
    expect(JSON.parse(readFileSync(join(runPath(), "config-001.json"), "utf8"))).toEqual({ model_name: "m" });
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

test.each(['{"name":', '{"name":"a"}', '{"name":"a","step":"ten","dataset_offset":0}'])(
  "a line of checkpoints.jsonl that is no record is named: %s",
  (line) => {
    writeFileSync(join(folder, "checkpoints.jsonl"), `{"name":"a","step":1,"dataset_offset":8}\n${line}\n`);
    expect(() => readCheckpoints(folder)).toThrow(/line 2/);
  },
);

describe("logging", () => {
  test("blanks secrets and credentials in URLs", () => {
    const environment = { TINKER_API_KEY: "tml-secret-value", HOME: "/home/someone" };
    const text = "key tml-secret-value at http://me:pw@host:1/x in /home/someone";
    expect(redact(text, environment)).toBe("key *** at http://***@host:1/x in /home/someone");
  });

  test("gives every line to the journal and shows only what is meant to be shown", () => {
    const shown: string[] = [];
    const noted: string[] = [];
    const logger = new RunLogger(
      { note: (event) => void (event.type === "log" && noted.push(`[${event.level}] ${event.message}`)) },
      (line) => shown.push(line),
    );
    logger.info("one");
    logger.detail("two");
    logger.warn("three");
    logger.fatal("four");
    expect(shown).toEqual(["one", "three"]);
    expect(noted).toEqual(["[INFO] one", "[INFO] two", "[WARNING] three", "[ERROR] four"]);
  });

  test("says the same warning once, not once a second", () => {
    const shown: string[] = [];
    const logger = new RunLogger({ note: () => {} }, (line) => shown.push(line));
    for (let time = 0; time < 69; time++) logger.warn("the sandbox gives no verdicts");
    expect(shown).toHaveLength(1);
  });
});

describe("sinks", () => {
  test("the checksum is CRC-32C", () => expect(crc32c(Buffer.from("123456789"))).toBe(0xe3069283));

  test("an event file holds frames whose lengths add up", () => {
    const sink = new TensorBoardSink(folder);
    sink.metrics({ step: 300, "reward/mean": 0.5 });
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
  });
});

test("spans become seconds: single ones, repeated ones, and what none of them covers", () => {
  const spans = [
    { name: "total", start: 0, end: 10_000 },
    { name: "sample", start: -5_000, end: 2_000 },
    { name: "grade", start: 1_000, end: 2_000 },
    { name: "grade", start: 3_000, end: 6_000 },
  ];
  expect(spanMetrics(spans)).toEqual({
    "time/total": 10,
    "time/sample": 7,
    "time/grade:total": 4,
    "time/grade:count": 2,
    "time/grade:mean": 2,
    "time/grade:max": 3,
    "time/other": 5,
  });
  expect(coveredMs(spans.slice(1))).toBe(10_000);
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
    plain.line("word ".repeat(40));
    plain.end();
    expect(written).toBe(`message\n${"word ".repeat(40)}\n`);
  });

  test("wraps messages at the terminal's width, and leaves commands whole", () => {
    let written = "";
    const display = new Display({ isTTY: true, columns: 50, write: (text) => (written += text) });
    display.line(
      `  means     ${"word ".repeat(20).trim()}\n            ${whet} train ${"key=value ".repeat(9).trim()}`,
    );
    const lines = written.trimEnd().split("\n");
    expect(lines.slice(0, -1).every((line) => line.length <= 50 + "\r\u001b[2K".length)).toBe(true);
    expect(lines.slice(1, -1).every((line) => line.startsWith("            word"))).toBe(true);
    expect(lines.at(-1)!.length).toBeGreaterThan(90);
  });

  test("draws bars, clocks and sparklines", () => {
    expect(bar(5, 10, 4)).toBe("██░░");
    expect([clock(5), clock(65), clock(3725)]).toEqual(["0:05", "1:05", "1:02:05"]);
    expect(sparkline([0, undefined, 0.5, 1], 0, 1)).toBe("▁ ▅█");
    expect(sparkline([])).toBe("");
  });
});
