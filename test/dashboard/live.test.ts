// The dashboard as a person uses it: a real `./whet train` watched in a real Chromium from its first step, controlled, killed, resumed and
// looked into. One run and one browser serve every test of this file, in order. The model is simulated: it takes its time without taking
// the processor's. Skipped, and said so, where there is no Chromium.
import { type ChildProcess, spawn } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DashboardServer, startDashboard } from "../../src/dashboard/server.ts";
import type { EventOf, RunEvent } from "../../src/runs/events.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { type ServeProcess, startServe } from "../contract/serve-process.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { cleanEnvironment, whetPath } from "../support/whet.ts";
import { violations } from "./accessibility.ts";
import { chromiumPath, follow, launch, overflow, visit, type Watched, watchedPage } from "./browser.ts";

const folder = foldersInMemory();
const starter = fileURLToPath(new URL("../../data/starter/train.jsonl", import.meta.url));
const model = [
  "engine=simulated",
  "tokenizer=nano-coder",
  "model_name=nano-coder",
  "context_window=1024",
  `answers=${starter}`,
  "completion_tokens=uniform:10:40",
  "solve_rate=uniform:0.2:0.8",
  "sampling_latency=uniform:100:300",
  "training_latency=constant:300",
];
const settings = [
  "max_steps=200", // it is stopped from the page
  "prompts_per_step=2",
  "completions_per_prompt=8",
  "max_tokens=300",
  "eval_every=4",
  "eval_max_problems=4",
  "max_lag=1",
  "num_groups_to_log=0",
  "tensorboard=false",
];

interface Training {
  child: ChildProcess;
  link: Promise<string>;
  ended: Promise<number | null>;
  stderr(): string;
}

/** `./whet train` as a person starts it; the link is read from its output. */
function startTraining(path: string, { baseUrl, apiKey }: ServeProcess): Training {
  const child = spawn(whetPath, ["train", `log_path=${path}`, `base_url=${baseUrl}`, ...settings], {
    env: cleanEnvironment({ TINKER_API_KEY: apiKey }),
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const link = new Promise<string>((resolve, reject) => {
    child.stderr!.on("data", (part: Buffer) => {
      text += part.toString();
      const found = /^dashboard +(http:\S+)$/m.exec(text)?.[1];
      if (found) resolve(found);
    });
    void ended.then((code) => reject(new Error(`train ended with ${code} before it gave a link:\n${text}`)));
  });
  link.catch(() => {});
  return { child, link, ended, stderr: () => text };
}

const events = (path: string): RunEvent[] => [...readJournal(path)].map(({ event }) => event);
const stepsDone = (path: string) => events(path).filter(({ type }) => type === "step-done").length;

async function until(what: string, check: () => boolean | Promise<boolean>, ms = 90_000): Promise<void> {
  for (const end = Date.now() + ms; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100)))
    if (await check()) return;
  throw new Error(`waited in vain: ${what}`);
}

describe.skipIf(!chromiumPath)("a run in the browser", () => {
  let browser: Browser;
  let runs: string;
  let run: string;
  let watched: Watched;
  let first: Training;
  let second: Training | undefined;
  let engine: ServeProcess;
  let server: DashboardServer | undefined;
  const origins = new Set<string>();

  beforeAll(async () => {
    runs = folder();
    run = join(runs, "watched");
    engine = await startServe([...model, `state_dir=${folder()}`]);
    first = startTraining(run, engine);
    browser = await launch();
    watched = await watchedPage(browser);
  });
  afterAll(async () => {
    for (const training of [first, second]) training?.child.kill("SIGKILL");
    await Promise.all([first?.ended, second?.ended]);
    await browser?.close();
    await server?.close();
    await engine?.close();
  });

  test("is watched from the first step: curves move without a reload", async () => {
    const url = await first.link;
    origins.add(new URL(url).origin);
    const { page } = watched;
    await page.goto(url);
    await page.evaluate("window.stayed = true");
    await page.locator(".state", { hasText: /step \d+ of 200/ }).waitFor({ timeout: 90_000 });
    const shown = async () => Number(/step (\d+) of 200/.exec((await page.locator(".state").textContent()) ?? "")?.[1]);
    const before = await shown();
    await until("another step on the page", async () => (await shown()) > before);
    // The curve has moved as well, not only the words.
    await page
      .locator(`.plot[data-to="${(await shown()) - 1}"]`)
      .first()
      .waitFor();
    expect(await page.evaluate("window.stayed")).toBe(true);
    expect(first.child.exitCode).toBe(null);
  });

  test("is paused and given another learning rate from the page, also over a kill", async () => {
    const { page } = watched;
    await page.locator(".controls summary").click();
    await page.getByRole("button", { name: "Pause" }).click();
    await until("the pause in the journal", () =>
      events(run).some((event) => event.type === "control" && event.control.kind === "pause"),
    );
    await page.locator(".controls summary", { hasText: "Paused" }).click();
    await page.getByLabel("Learning rate").fill("0.00125");
    await page.getByRole("button", { name: "set" }).click();
    await until("the rate in the journal", () =>
      events(run).some((event) => event.type === "control" && event.control.kind === "learning-rate"),
    );
    const done = stepsDone(run);
    first.child.kill("SIGKILL");
    await first.ended;
    await page.locator(".state", { hasText: "connection lost" }).waitFor();

    second = startTraining(run, engine);
    const url = await second.link;
    origins.add(new URL(url).origin);
    await page.goto(url);
    await page.locator(".controls summary", { hasText: "Paused" }).click({ timeout: 60_000 });
    expect(stepsDone(run)).toBe(done);
    await page.getByRole("button", { name: "Go on" }).click();
    await until("a step at the new rate", () =>
      events(run).some((event) => event.type === "update-submitted" && event.rule.adam.learningRate === 0.00125),
    );
    const asked = events(run).flatMap((event) => (event.type === "control" ? [[event.control.kind, event.by]] : []));
    expect(asked).toEqual([
      ["pause", "dashboard"],
      ["learning-rate", "dashboard"],
      ["go-on", "dashboard"],
    ]);
    expect(second.child.exitCode).toBe(null);
  });

  test("is saved, evaluated and stopped from the page, which says so; the link is in no file of the run", async () => {
    const { page } = watched;
    const link = await second!.link;
    const evaluated = () => events(run).flatMap((event) => (event.type === "evaluated" ? [event.step] : []));
    const asked = (kind: string) =>
      events(run).some((event) => event.type === "control" && event.control.kind === kind && event.by === "dashboard");
    const press = async (name: string, kind: string) => {
      await page.getByRole("button", { name, exact: true }).click();
      await until(`${kind} in the journal`, () => asked(kind));
    };
    await until("the evaluation after step 4", () => evaluated().includes(4));
    await page.locator(".controls summary", { hasText: "Controls" }).click();
    await press("Save now", "save");
    // Asked for at a step that is evaluated anyway it would be no evaluation of its own.
    await until("an evaluation that was asked for", async () => {
      await press("Evaluate now", "evaluate");
      return evaluated().some((step) => step % 4 !== 0);
    });
    await press("Stop", "stop");
    expect(await second!.ended, second!.stderr()).toBe(130);
    const saved = events(run).flatMap((event) => (event.type === "saved" ? [event.record.step] : []));
    expect(saved.length).toBeGreaterThan(1);
    expect(Math.max(...saved)).toBe(stepsDone(run));
    await page.locator(".state", { hasText: "stopped" }).waitFor();
    await page.locator(".state", { hasText: "the dashboard has ended" }).waitFor();
    const { readdirSync, readFileSync } = await import("node:fs");
    const secret = new URL(link).pathname.split("/")[1]!;
    for (const name of [
      "logs.log",
      "config.json",
      ...readdirSync(join(run, "journal")).map((file) => `journal/${file}`),
    ])
      expect(readFileSync(join(run, name)).includes(secret), name).toBe(false);
  });

  test("from a dip in the curve to the failing test of one program in two clicks", async () => {
    server = await startDashboard({ roots: [runs], port: 0 });
    origins.add(new URL(server.url).origin);
    const { page } = watched;
    await visit(page, server.url, "");
    const chart = page
      .locator(".chart", { has: page.getByRole("heading", { name: "Reward", exact: true }) })
      .locator(".u-over");
    await chart.waitFor();
    const box = (await chart.boundingBox())!;
    // One: the first step, where the reward is lowest.
    await chart.click({ position: { x: 1, y: box.height / 2 } });
    await page.getByRole("heading", { name: "Step 0" }).waitFor();
    // Two: an answer that gave the wrong output; some of the simulated model's give none.
    const wrong = events(run).find(
      (event) =>
        event.type === "graded" && event.phase === "train" && event.batch === 0 && event.grade.failure?.printed,
    ) as EventOf<"graded">;
    // Whoever looks need not know the problem: what was asked stands with its answers.
    const asked = events(run).find(
      (event) => event.type === "group-sampled" && event.phase === "train" && event.batch === 0,
    ) as EventOf<"group-sampled">;
    const words = (text: string | null) => text!.split(/\s+/).join(" ").trim();
    expect(words(await page.locator(".group-row .question").nth(asked.group).textContent())).toBe(
      words(asked.question!.slice(0, 400)),
    );
    const place = `/step/0/group/${wrong.group}/sample/${wrong.sample}`;
    await page.locator(`.chip.fail[aria-label*="wrong answer"][href$="${place}"]`).click();
    await page.getByRole("heading", { name: /^Test \d+ failed$/ }).waitFor();
    for (const label of ["input", "expected", "printed"])
      await page.getByRole("region", { name: label, exact: true }).first().waitFor();
    expect(page.url()).toContain(`#/run/watched${place}`);
    // The link leads others to the same place, and keys lead on from it.
    const again = page.url();
    await page.goto("about:blank");
    await page.goto(again);
    await page.getByRole("heading", { name: /^Test \d+ failed$/ }).waitFor();
    for (const mode of ["advantage", "gap to the trainer", "log-probability"]) {
      await page.getByRole("button", { name: mode }).click();
      expect(await page.locator(".token").count()).toBeGreaterThan(5);
    }
    expect(await page.locator(".token[class*=down]").count()).toBeGreaterThan(0);
    await page
      .locator(".token", { hasText: /[a-z]{2}/ })
      .first()
      .hover();
    expect(await page.locator(".readout").textContent()).toMatch(/token \d+ .*log-probability/);
    await page.keyboard.press("Escape");
    await page.getByRole("heading", { name: /^Group \d+/ }).waitFor();
    await page.getByRole("region", { name: "question" }).waitFor();
  });

  test("any two programs of a group are compared line by line", async () => {
    const { page } = watched;
    expect(await page.locator(".program").count()).toBe(8);
    const boxes = page.locator('.program input[type="checkbox"]');
    const texts = await page.locator(".program pre").allTextContents();
    const other = texts.findIndex((text) => text !== texts[0]);
    await boxes.nth(0).check();
    await boxes.nth(other).check();
    await page.locator(".diff .removed").first().waitFor();
    expect(await page.locator(".diff .added").count()).toBeGreaterThan(0);
    expect(page.url()).toContain(`?diff=0,${other}`);
    await page.keyboard.press("d");
    await page.locator(".diff").waitFor({ state: "detached" });
  });

  test("an answer without a program looks other than one with a wrong output: sign, word, shape", async () => {
    const { page } = watched;
    const graded = events(run).flatMap((event) => (event.type === "graded" && event.phase === "train" ? [event] : []));
    const wrongAt = new Set(graded.filter(({ grade }) => grade.status === "wrong_answer").map(({ batch }) => batch));
    const without = graded.find(({ batch, grade }) => grade.status === "format_error" && wrongAt.has(batch))!;
    await follow(page, `#/run/watched/step/${without.batch}`);
    const chip = page.locator(`.chip[href$="/group/${without.group}/sample/${without.sample}"]`);
    expect(await chip.getAttribute("class")).toMatch(/\bformat\b/);
    expect([await chip.textContent(), await chip.getAttribute("aria-label")]).toEqual([
      "∅",
      expect.stringContaining("format error"),
    ]);
    await page.locator(".badge.format", { hasText: /^∅ format error \d+$/ }).waitFor();
    const wrong = page.locator('.chip.fail[aria-label*="wrong answer"]').first();
    const shape = (chosen: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector("${chosen}")).borderRadius`);
    expect(await wrong.textContent()).toBe("✕");
    expect(await shape(".chip.format")).not.toBe(await shape(".chip.fail"));
  });

  test("evaluations have their figures by source, with how many problems and an interval", async () => {
    const { page } = watched;
    const { outcomes } = events(run).findLast((event) => event.type === "evaluated") as EventOf<"evaluated">;
    await follow(page, "#/run/watched/evals");
    const rows = page.getByRole("region", { name: "Pass@1 by source" }).locator("tbody tr");
    expect((await rows.locator("th").allTextContents()).toSorted()).toEqual(
      [...new Set(outcomes.map(({ source }) => source))].toSorted(),
    );
    expect(await rows.first().textContent()).toMatch(/\d[\d.]*% [\d.]+% to [\d.]+%/);
  });

  test("the keys are in the middle of the window, and a phone sees that there is more to a side", async () => {
    const { page } = watched;
    await page.keyboard.press("?");
    const dialog = (await page.locator("dialog").boundingBox())!;
    expect(dialog.x + dialog.width / 2).toBeCloseTo(1280 / 2, -1);
    expect(dialog.y + dialog.height / 2).toBeCloseTo(900 / 2, -1);
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 390, height: 844 });
    await follow(page, "#/run/watched/problems");
    for (const place of ["#head nav", ".wide"]) {
      const there = `document.querySelector("${place}")`;
      expect(await page.evaluate<number>(`${there}.scrollWidth - ${there}.clientWidth`), place).toBeGreaterThan(20);
      // The background alone: what is written on it moves.
      await page.evaluate(`for (const child of ${there}.children) child.style.visibility = "hidden"`);
      const box = (await page.locator(place).first().boundingBox())!;
      const edge = (x: number) =>
        page.screenshot({ clip: { x, y: box.y + 12, width: 6, height: 8 }, animations: "disabled" });
      const edges = async () => [await edge(box.x + 2), await edge(box.x + box.width - 8)];
      const [leftBefore, rightBefore] = await edges();
      await page.evaluate(`${there}.scrollLeft = 1e6`);
      const [leftAfter, rightAfter] = await edges();
      expect([leftBefore!.equals(leftAfter!), rightBefore!.equals(rightAfter!)], place).toEqual([false, false]);
      expect(leftBefore!.equals(rightAfter!), `${place}: an end without a shade looks like the other`).toBe(true);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  test("every page: no serious finding of axe, nothing wider than a phone, light and dark", async () => {
    const places = [
      "#/runs",
      "#/run/watched",
      "#/run/watched/problems",
      "#/run/watched/evals",
      "#/run/watched/config",
      "#/run/watched/step/1",
      "#/run/watched/step/1/group/0",
      "#/run/watched/step/1/group/0/sample/0",
      "#/run/watched/eval/4",
      "#/compare?run=watched",
    ];
    const { page } = watched;
    const look = async (colorScheme: "light" | "dark") => {
      await page.emulateMedia({ colorScheme });
      const back = await page.evaluate<string>("getComputedStyle(document.documentElement).backgroundColor");
      expect(Number(/\d+/.exec(back)![0]) < 60, back).toBe(colorScheme === "dark");
    };
    for (const place of places) {
      // As a phone has it, then wide.
      await page.setViewportSize({ width: 390, height: 844 });
      await look("light");
      await follow(page, place);
      expect(await overflow(page), place).toBeLessThanOrEqual(0);
      await page.setViewportSize({ width: 1280, height: 900 });
      await page.waitForTimeout(150);
      expect(await violations(page), place).toEqual([]);
      // In the dark only the colours are others.
      if (!/watched$|group|evals/.test(place)) continue;
      await look("dark");
      await page.waitForTimeout(150);
      expect(await violations(page, ["color-contrast"]), `${place}, dark`).toEqual([]);
    }
    await page.emulateMedia({ colorScheme: "light" });
  });

  test("two runs in one chart, with what differs between them", async () => {
    const { page } = watched;
    const { baseUrl, apiKey } = engine;
    const differs = [
      "max_steps=2",
      "eval_max_problems=3",
      "format_coef=0.2",
      "seed=5",
      "dashboard=false",
      `base_url=${baseUrl}`,
    ];
    const other = await runCommand(["train", `log_path=${join(runs, "other")}`, ...settings, ...differs], {
      env: { TINKER_API_KEY: apiKey },
    });
    expect(other.code, other.stderr).toBe(0);
    expect(other.stderr).not.toMatch(/^dashboard/m);
    await visit(page, server!.url, "#/runs");
    for (const box of await page.locator('tbody input[type="checkbox"]').all()) await box.check();
    await page.getByRole("button", { name: "Compare the chosen" }).click();
    await page.getByRole("heading", { name: "Compare runs" }).waitFor();
    await page.locator(".u-legend .u-series", { hasText: "other" }).waitFor();
    await page.locator(".u-legend .u-series", { hasText: "watched" }).waitFor();
    await page.locator("tr", { hasText: "seed" }).waitFor();
    const last = page.locator("tr", { hasText: "Pass@1, last" });
    for (const cell of await last.locator("td").allTextContents())
      expect(cell).toMatch(/^[\d.]+% [\d.]+% to [\d.]+%, [34] problems after step \d+$/);
    expect((await page.locator(".finding.warning").allTextContents()).join("\n")).toMatch(
      /Pass@1 was measured on other test problems \(eval_ids_hash\)[\s\S]*rewards were given by other rules \(format_coef\)/,
    );
    expect(await violations(page)).toEqual([]);
    // Beside itself nothing differs.
    await follow(page, "#/compare?run=watched&run=watched");
    await page.locator("tr", { hasText: "Pass@1, last" }).waitFor();
    expect(await page.locator(".finding.warning").count()).toBe(0);
  });

  test("the report opens from disk, without a network, and is under 3 MB", async () => {
    const written = await runCommand(["report", run]);
    expect(written.code, written.stderr).toBe(0);
    const file = written.stdout.trim();
    expect(statSync(file).size).toBeLessThan(3e6);
    const offline = await watchedPage(browser, { offline: true });
    const address = pathToFileURL(file).href;
    await offline.page.goto(address);
    await offline.page.getByRole("heading", { name: "Curves" }).waitFor();
    expect(await offline.page.locator("svg").count()).toBeGreaterThan(5);
    expect(await offline.page.locator("blockquote").first().textContent()).toMatch(/Print|Return/);
    expect(await offline.page.locator("script, link, iframe, img").count()).toBe(0);
    expect(offline.requests).toEqual([address]);
    expect(offline.complaints).toEqual([]);
    expect(await violations(offline.page)).toEqual([]);
    await offline.page.context().close();
  });

  test("nothing was asked of anybody else, and the page had nothing to complain of", () => {
    const asked = new Set(
      watched.requests.filter((url) => !url.startsWith("about:")).map((url) => new URL(url).origin),
    );
    expect([...asked].filter((origin) => !origins.has(origin))).toEqual([]);
    expect(watched.requests.length).toBeGreaterThan(20);
    expect(watched.complaints).toEqual([]);
  });
});
