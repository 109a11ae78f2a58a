// `./whet bench dashboard`: the dashboard of a run of 10,000 steps and 1 GB of journal: how long until its curves are there, until one
// answer is open, what memory it takes; and how all of that grows with the length of the run.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { findOnPath } from "../src/core/languages/machine.ts";
import { cleanEnvironment, whetPath } from "../test/support/whet.ts";
import { writeRun } from "./dashboard-run.ts";
import type { Benchmark } from "./report.ts";

interface Figures {
  steps: number;
  bytes: number;
  /** Milliseconds from opening the link. */
  firstRowsMs: number;
  allRowsMs: number;
  firstChartMs: number | undefined;
  allChartsMs: number | undefined;
  serverBytes: number;
  pageBytes: number | undefined;
  answerMs: number;
  answerShownMs: number | undefined;
}

export const benchmark: Benchmark = {
  async run(say, { quick }) {
    const lengths = quick ? [20, 60, 200] : [1000, 3000, 10_000];
    const browser = ["chromium", "chromium-browser", "google-chrome"].map(findOnPath).find(Boolean);
    if (!browser) say("no Chromium on PATH: the page is not measured, only its server");
    const all: Figures[] = [];
    for (const steps of lengths) {
      const folder = mkdtempSync(join(tmpdir(), "whetstone-bench-"));
      try {
        say(`writing a run of ${steps} steps`);
        const bytes = await writeRun(folder, steps, (step) => step > 0 && step % 1000 === 0 && say(`  step ${step}`));
        all.push(await measure(folder, steps, bytes, browser));
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }
    const [short, middle, long] = all as [Figures, Figures, Figures];
    const row = (what: string, pick: (figures: Figures) => number | undefined, show: (value: number) => string) => {
      const [a, b, c] = [pick(short), pick(middle), pick(long)];
      if (a === undefined || b === undefined || c === undefined) return [];
      return [
        { what, ours: show(c), other: `${show(a)}, ${show(b)}`, figure: `${(c / Math.max(a, 1e-9)).toFixed(1)}×` },
      ];
    };
    const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
    const mb = (value: number) => `${(value / 1e6).toFixed(0)} MB`;
    return {
      title: "The dashboard of a long run",
      columns: [`${long.steps} steps`, `${short.steps}, ${middle.steps} steps`],
      rows: [
        ...row("journal", ({ bytes }) => bytes, mb),
        ...row("link to first figures sent", ({ firstRowsMs }) => firstRowsMs, ms),
        ...row("link to all figures sent", ({ allRowsMs }) => allRowsMs, ms),
        ...row("page: first chart drawn", ({ firstChartMs }) => firstChartMs, ms),
        ...row("page: every step in the charts", ({ allChartsMs }) => allChartsMs, ms),
        ...row("one answer, read (median of 20)", ({ answerMs }) => answerMs, ms),
        ...row("page: one answer, click to shown", ({ answerShownMs }) => answerShownMs, ms),
        ...row("server, peak memory", ({ serverBytes }) => serverBytes, mb),
        ...row("page, JavaScript heap", ({ pageBytes }) => pageBytes, mb),
      ],
      notes: [
        `figure: ${long.steps} steps over ${short.steps}; the journal is ${(long.bytes / short.bytes).toFixed(1)}× as long.`,
        "The journal was just written, so the system has much of it in memory; each run has a server of its own, started for it.",
      ],
    };
  },
};

async function measure(folder: string, steps: number, bytes: number, browser: string | undefined): Promise<Figures> {
  const served = await serve(folder);
  try {
    const sent = await receive(served.url, steps);
    const answers: number[] = [];
    for (let index = 0; index < 20; index++) {
      const step = Math.floor((steps * index) / 20);
      const started = performance.now();
      const answer = await fetch(
        `${served.url}api/run/${encodeURIComponent(served.run)}/step/${step}/group/3/sample/5`,
      );
      if (!answer.ok || ((await answer.json()) as { code: string }).code.length === 0) throw new Error("no answer");
      answers.push(performance.now() - started);
    }
    answers.sort((a, b) => a - b);
    const firstServer = { ...sent, answerMs: answers[10]!, serverBytes: served.peakBytes() };
    const page = browser === undefined ? undefined : await open(browser, folder, steps);
    return {
      steps,
      bytes,
      ...firstServer,
      firstChartMs: page?.firstChartMs,
      allChartsMs: page?.allChartsMs,
      pageBytes: page?.pageBytes,
      answerShownMs: page?.answerShownMs,
    };
  } finally {
    served.stop();
  }
}

/** A real browser over a fresh server: from opening the link. */
async function open(executablePath: string, folder: string, steps: number) {
  const served = await serve(folder);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const started = performance.now();
    await page.goto(served.url);
    await page.locator(".plot canvas").first().waitFor({ timeout: 120_000 });
    const firstChartMs = performance.now() - started;
    await page.locator(".state", { hasText: `step ${steps} of ${steps}` }).waitFor({ timeout: 300_000 });
    const allChartsMs = performance.now() - started;
    const session = await page.context().newCDPSession(page);
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = (await session.send("Runtime.getHeapUsage")) as { usedSize: number };
    const clicked = performance.now();
    const place = `#/run/${encodeURIComponent(served.run)}/step/${Math.floor(steps / 2)}/group/3/sample/5`;
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
    await page.waitForSelector(".view-step pre.code", { timeout: 60_000 });
    return { firstChartMs, allChartsMs, pageBytes: usedSize, answerShownMs: performance.now() - clicked };
  } finally {
    await browser.close();
    served.stop();
  }
}

async function serve(folder: string) {
  const child = spawn(whetPath, ["dashboard", folder], {
    env: cleanEnvironment(),
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [url] = await new Promise<string[]>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", (line) => resolve([line]));
    child.once("exit", (code) => reject(new Error(`./whet dashboard ended with ${code}`)));
  });
  const { runs } = (await (await fetch(`${url}api/runs`)).json()) as { runs: { id: string }[] };
  return {
    url: url!,
    run: runs[0]!.id,
    /** The most it ever held; the launcher becomes the server, so the child is it. */
    peakBytes: () => 1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]),
    stop: () => child.kill("SIGTERM"),
  };
}

/** Reads the stream as a page does, until every step was sent. */
async function receive(url: string, steps: number): Promise<{ firstRowsMs: number; allRowsMs: number }> {
  const { runs } = (await (await fetch(`${url}api/runs`)).json()) as { runs: { id: string }[] };
  const started = performance.now();
  const response = await fetch(`${url}api/run/${encodeURIComponent(runs[0]!.id)}/live`);
  let text = "";
  let firstRowsMs: number | undefined;
  let rows = 0;
  const decoder = new TextDecoder();
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const event = text.slice(0, end);
      text = text.slice(end + 2);
      if (!event.startsWith("event: rows")) continue;
      firstRowsMs ??= performance.now() - started;
      rows += (JSON.parse(event.slice(event.indexOf("data: ") + 6)) as { steps: number[] }).steps.length;
    }
    if (rows >= steps) break;
  }
  return { firstRowsMs: firstRowsMs!, allRowsMs: performance.now() - started };
}
