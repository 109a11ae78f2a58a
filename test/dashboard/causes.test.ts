// A run that broke, as the dashboard and the report tell it: one cause, open, with what followed from it beneath; why it failed on top.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { renderReport } from "../../src/dashboard/report.ts";
import { type DashboardServer, startDashboard } from "../../src/dashboard/server.ts";
import { Diagnosis } from "../../src/diagnosis/diagnosis.ts";
import type { NewEvent } from "../../src/runs/events.ts";
import { Journal } from "../../src/runs/journal.ts";
import { overviewOf } from "../../src/runs/overview.ts";
import { collapsedRuns } from "../support/collapsed-runs.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { violations } from "./accessibility.ts";
import { chromiumPath, launch, visit, type Watched, watchedPage } from "./browser.ts";

const folder = foldersInMemory();
const error = "The server is gone.\nStart it, then run the same command again.";

/** Writes a run as training does: what the diagnosis finds stands after the event that brought it. */
async function writeRun(path: string, events: readonly NewEvent[]): Promise<string> {
  const journal = await Journal.open(path);
  writeFileSync(join(path, "config.json"), JSON.stringify({ model_name: "nano-coder" }));
  const diagnosis = new Diagnosis(path);
  const spans = [{ name: "total", start: 0, end: 1000 }];
  for (const recorded of events) {
    const event = recorded.type === "step-done" ? { ...recorded, spans } : recorded;
    await journal.append(event);
    for (const { step, finding } of diagnosis.take({ ...event, at: Date.now() }))
      if (event.type !== "stopped") await journal.append({ type: "finding", step, finding, action: "none" });
  }
  await journal.close();
  return path;
}

let root: string;
beforeAll(async () => {
  root = folder();
  const [, [, broken]] = collapsedRuns as [unknown, (typeof collapsedRuns)[number]];
  await writeRun(join(root, "broken"), [...broken, { type: "stopped", outcome: "finished" }]);
  await writeRun(join(root, "failed"), [
    ...broken.slice(0, 4),
    { type: "stopped", outcome: "failed", error, code: "client/connection" },
  ]);
});

test("the list of runs says what is wrong with one that came to its end", async () => {
  expect(overviewOf(join(root, "broken")).problem).toMatch(/^collapse after step 4: right answers came for 19 of 24/);
  expect((await runCommand(["diagnose", join(root, "broken")])).stdout).toMatch(/^1 error, 0 warnings, 0 notes$/m);
});

test("the report has one finding, with its symptoms folded away, and says on top why a run failed", async () => {
  const broken = await renderReport(join(root, "broken"), new Date());
  expect(broken.match(/<li class="error">/g)).toHaveLength(1);
  const [, followed] = /<details><summary>What followed from it: (\d)<\/summary>/.exec(broken) ?? [];
  expect(Number(followed)).toBeGreaterThan(3);
  expect(broken).not.toContain("max_tokens=224");
  const failed = await renderReport(join(root, "failed"), new Date());
  expect(failed.indexOf("<b>The run failed:</b> The server is gone.")).toBeGreaterThan(0);
  expect(failed.indexOf("The run failed")).toBeLessThan(failed.indexOf('<section class="tiles">'));
});

describe.skipIf(!chromiumPath)("in the browser", () => {
  let browser: Browser;
  let server: DashboardServer;
  let watched: Watched;
  beforeAll(async () => {
    server = await startDashboard({ roots: [root], port: 0 });
    browser = await launch();
    watched = await watchedPage(browser);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test("the list tells a run that broke from one that did not, by word and shape", async () => {
    const { page } = watched;
    await visit(page, server.url, "#/runs");
    const row = page.locator("tr", { hasText: "broken" });
    await row.getByText("finished, collapse").waitFor();
    expect(await page.evaluate("getComputedStyle(document.querySelector('.dot.wrong')).borderRadius")).toBe("0px");
  });

  test("one cause, open; its symptoms beneath, closed, and without advice", async () => {
    const { page } = watched;
    await visit(page, server.url, "#/run/broken");
    const causes = page.locator(".findings > details");
    await causes.first().waitFor();
    expect(await causes.count()).toBe(1);
    expect(await causes.getAttribute("class")).toBe("finding error");
    const open = "[...document.querySelectorAll('.findings details')].map(({ open }) => open)";
    expect(await page.evaluate(open)).toEqual([true, false]);
    await causes.locator("summary", { hasText: /^What followed from it: [5-9]$/ }).click();
    await causes.getByText("truncated-answers").waitFor();
    expect(await causes.textContent()).not.toMatch(/max_tokens=224|completions_per_prompt=/);
    expect(await page.locator(".state").textContent()).toMatch(/^finished · collapse · /);
    expect(await violations(page)).toEqual([]);
  });

  test("why a run failed stands on top of it", async () => {
    const { page } = watched;
    await visit(page, server.url, "#/run/failed");
    const reason = page.getByRole("region", { name: "The run failed" });
    await reason.waitFor();
    expect(await reason.locator(".reason").textContent()).toBe(error);
    const [top, tiles] = await Promise.all([reason.boundingBox(), page.locator(".tiles").boundingBox()]);
    expect(top!.y).toBeLessThan(tiles!.y);
    expect(await violations(page)).toEqual([]);
    expect(watched.complaints).toEqual([]);
  });
});
