// What models, data sets and file names can say, in a real Chromium: all of it is shown, none of it does anything.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { renderReport } from "../../src/dashboard/report.ts";
import { type DashboardServer, startDashboard } from "../../src/dashboard/server.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { chromiumPath, follow, launch, overflow, visit, type Watched, watchedPage } from "./browser.ts";
import { hostileName, hostileTexts, writeHostileRun } from "./hostile.ts";

const folder = foldersInMemory();

/** In the page: what is there besides what the page itself makes (its own script and styles), handlers in attributes, links that lead out. */
const lookForMarkup = `(() => {
  const own = /^<(script type="module" src="page\\/app\\.js"|link rel="(icon|stylesheet)" href="(page|vendor)\\/)/;
  const suspects = "script, link, iframe, img, object, embed, base, meta[http-equiv], style, [src], animate";
  return {
    broken: window.broken,
    foreign: [...document.querySelectorAll(suspects)].map((element) => element.outerHTML).filter((html) => !own.test(html)),
    handlers: [...document.querySelectorAll("*")].flatMap((element) => element.getAttributeNames()).filter((name) => name.startsWith("on")),
    links: [...document.querySelectorAll("a")].map((element) => element.getAttribute("href") ?? "").filter((href) => !href.startsWith("#")),
  };
})()`;

describe.skipIf(!chromiumPath)("hostile texts", () => {
  let browser: Browser;
  let server: DashboardServer;
  let watched: Watched;
  let path: string;
  const id = `#/run/${encodeURIComponent(hostileName)}`;

  beforeAll(async () => {
    const root = folder();
    path = await writeHostileRun(root, hostileName, 100_000);
    await writeHostileRun(root, "long");
    server = await startDashboard({ roots: [root], port: 0 });
    browser = await launch();
    watched = await watchedPage(browser);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const problem = encodeURIComponent(hostileTexts[1]!);
  const places = [
    "",
    "/config",
    "/problems",
    "/evals",
    "/eval/0",
    "/step/0",
    "/step/0/group/0",
    "/step/0/group/0?diff=0,1",
    "/step/0/group/0/sample/0",
    "/step/0/group/0/sample/13",
    "/eval/0/group/3",
    `/problem/${problem}`,
    "/problem/__proto__",
  ];

  test("are text on every page", async () => {
    const { page } = watched;
    await visit(page, server.url, "#/compare");
    for (const place of ["#/runs", "#/compare", ...places.map((one) => id + one)]) {
      await follow(page, place);
      await page.waitForTimeout(100);
      const found = await page.evaluate(lookForMarkup);
      expect(found, place).toEqual({ broken: undefined, foreign: [], handlers: [], links: [] });
      expect(await overflow(page), place).toBeLessThanOrEqual(0);
    }
    expect(watched.complaints).toEqual([]);
  });

  test("are shown, with what is unseen by name", async () => {
    const { page } = watched;
    await visit(page, server.url, `${id}/step/0/group/0`);
    const text = (await page.locator(".programs").textContent())!;
    expect(text).toContain("<script>window.broken=1;alert(1)</script>");
    expect(text).toContain('<img src=x onerror="window.broken=1;alert(1)">');
    await visit(page, server.url, `${id}/step/0/group/0/sample/13`);
    const named = await page.locator(".hidden-character").allTextContents();
    for (const name of ["U+202E", "U+2066", "U+200B", "U+FEFF", "U+00AD"]) expect(named).toContain(name);
  });

  test("a line of ten million characters is shown from its beginning, and more when asked", async () => {
    const { page } = watched;
    const started = Date.now();
    await visit(page, server.url, `#/run/long/step/0/group/0/sample/${hostileTexts.length}`);
    const block = page.locator(".two pre.text").first();
    expect((await block.textContent())!.length).toBeLessThan(20_000);
    await page
      .getByRole("button", { name: /show more/ })
      .first()
      .click();
    expect((await block.textContent())!.length).toBeGreaterThan(50_000);
    // No claim about speed: a page that hangs on such a line would not get here at all.
    expect(Date.now() - started).toBeLessThan(60_000);
  });

  test("are text in the report too", async () => {
    const file = join(folder(), "report.html");
    writeFileSync(file, await renderReport(path, new Date()));
    const report = await watchedPage(browser, { offline: true });
    await report.page.goto(pathToFileURL(file).href);
    const found = await report.page.evaluate(`({
      broken: window.broken,
      foreign: document.querySelectorAll("script, link, iframe, img, object, embed, [src], [href], animate").length,
      handlers: [...document.querySelectorAll("*")].flatMap((element) => element.getAttributeNames()).filter((name) => name.startsWith("on")),
    })`);
    expect(found).toEqual({ broken: undefined, foreign: 0, handlers: [] });
    expect(report.complaints).toEqual([]);
    expect(await report.page.locator("body").textContent()).toContain("<script>window.broken=1;alert(1)</script>");
    await report.page.context().close();
  });

  test("asked nobody for anything", () => {
    const hosts = new Set(watched.requests.filter((url) => url.startsWith("http")).map((url) => new URL(url).origin));
    expect([...hosts]).toEqual([new URL(server.url).origin]);
  });
});

describe("hostile texts in a terminal", () => {
  test("neither steer it nor turn its lines around, whatever is shown", async () => {
    const root = folder();
    // A shorter line is enough for a terminal.
    const path = await writeHostileRun(root, hostileName, 100_000);
    const opened = [
      [],
      ["step=0"],
      ["step=0", "group=0"],
      ["step=0", "group=0", "sample=13"],
      ["step=0", "group=0", "sample=14", "raw=true"],
      ["evaluation=0"],
      [`problem=${hostileTexts[1]!}`],
      ["problem=not there\u001B[31m"],
    ];
    const commands = [
      ...opened.map((words) => ["show", `run=${path}`, ...words]),
      ["diagnose", path],
      ["runs", root],
      ["checkpoints", `run=${path}`],
    ];
    const shown = await Promise.all(commands.map((words) => runCommand(words)));
    for (const [index, { stdout, stderr }] of shown.entries()) {
      expect(stdout + stderr, commands[index]!.join(" ")).not.toMatch(steering);
      expect(stdout.length + stderr.length).toBeGreaterThan(0);
    }
    expect(shown.slice(0, 7).map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 0, 0]);
    expect(shown[3]!.stdout).toContain("evil");
  });
});

/** Control characters but for tab and newline, and what changes the direction of text. */
const steering = /(?![\t\n])[\p{Cc}\p{Bidi_C}]/u;
