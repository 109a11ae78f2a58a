// Episodes of several turns with tools, as people look at them: in a real Chromium, in the report, and by `./whet show`. One real run.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { environment } from "whetstone/rl";
import { renderReport } from "../../src/dashboard/report.ts";
import { startDashboard } from "../../src/dashboard/server.ts";
import type { EventOf, RunEvent } from "../../src/runs/events.ts";
import { runCommand } from "../support/command-process.ts";
import { eventsNamed, newFolder, trainOn } from "../support/environment-runs.ts";
import { sharedEngine } from "../support/shared-engine.ts";
import { type NumberProblem, numbers, taughtRank, teachTools, toolRenderer, tools } from "../support/tool-user.ts";
import { violations } from "./accessibility.ts";
import { chromiumPath, launch, overflow, visit, watchedPage } from "./browser.ts";

let root: string;
let path: string;
let events: RunEvent[];
/** A graded episode of two turns or more with a call that gave something. */
let episode: EventOf<"graded">;
let results: readonly EventOf<"turn-sampled">[];

beforeAll(async () => {
  const renderer = await toolRenderer(newFolder());
  const taught = await teachTools(await sharedEngine(), renderer);
  const doubles = environment({
    problems: numbers,
    tools,
    maxTurns: 5,
    async run({ problem, chat, log }) {
      for await (const { text, toolCalls } of chat) {
        chat.reward(0.1 * toolCalls.length);
        log("said", `<b>${text}</b>\u202E`);
        log("length", text.length);
      }
      return Number(last(chat.messages) === `${2 * (problem as NumberProblem).secret}`);
    },
  });
  root = newFolder();
  path = join(root, "doubles");
  const config = { from: taught, lora_rank: taughtRank, max_tokens: 40, max_steps: 2, max_lag: 0 } as const;
  ({ events } = await trainOn(doubles, { renderer, path, config }));
  const called = eventsNamed(events, "turn-sampled").filter(({ added }) => added.some(({ role }) => role === "tool"));
  const graded = eventsNamed(events, "graded");
  episode = graded.find(({ grade, batch, group, sample }) =>
    called.some((turn) => turn.batch === batch && turn.group === group && turn.sample === sample && grade.episode),
  )!;
  results = called.filter(
    ({ batch, group, sample }) => batch === episode.batch && group === episode.group && sample === episode.sample,
  );
}, 60_000);

const last = (messages: readonly { content: string }[]) => messages.at(-1)?.content.trim();

test("show tells an episode turn by turn, and a group by how its episodes ended", async () => {
  expect(episode.grade.episode!.toolCalls).toBeGreaterThan(0);
  const { batch, group, sample } = episode;
  const where = [`step=${batch}`, `group=${group}`];
  const { stdout } = await runCommand(["show", path, ...where, `sample=${sample}`]);
  const { turns, stop } = episode.grade.episode!;
  expect(stdout).toContain(`  episode   ${turns.length} turns · ${stop === "done" ? "done" : `ended by ${stop}`}`);
  expect(stdout).toMatch(/^ {2}calls double\(\{"n":\d+\}\)$/m);
  const given = results[0]!.added.find(({ role }) => role === "tool")!.content;
  expect(stdout).toContain(`\ntool\n  │ ${given}\n`);
  expect(stdout).toMatch(/^turn 0 \(\d+ tokens; reward 0\.100\)$/m);
  expect(stdout).toContain("log       said: <b>");
  expect(stdout).not.toContain("\u202E");
  expect((await runCommand(["show", path, ...where])).stdout).toMatch(/ tokens +turns +stop/);
});

test("the report has the conversation, as text", async () => {
  const report = await renderReport(path, new Date());
  expect(report).toMatch(/<summary>\d+ turns? · (done|ended by)/);
  expect(report).toContain("double({&quot;n&quot;:");
  expect(report).not.toContain("<b>Double");
});

describe.skipIf(!chromiumPath)("in the browser", () => {
  const opened = async () => {
    const [browser, server] = [await launch(), await startDashboard({ roots: [root], port: 0 })];
    return { browser, server, ...(await watchedPage(browser)) };
  };
  let it: Awaited<ReturnType<typeof opened>>;
  beforeAll(async () => {
    it = await opened();
  });
  afterAll(async () => {
    await it?.browser.close();
    await it?.server.close();
  });

  test("an episode is a conversation: turns, calls with arguments and results, rewards, why it ended", async () => {
    const { page, server, complaints } = it;
    const { batch, group, sample, grade } = episode;
    await visit(page, server.url, `#/run/doubles/step/${batch}/group/${group}/sample/${sample}`);
    const talk = page.locator(".conversation");
    expect(await talk.locator(".turn").count()).toBe(grade.episode!.turns.length);
    expect(await talk.locator(".call").first().textContent()).toMatch(/^calls double\(\{"n":\d+\}\)$/);
    expect(await talk.locator(".said.tool .text").first().textContent()).toBe(results[0]!.added[0]!.content);
    expect(await talk.locator(".turn h3").first().textContent()).toContain("reward +0.1");
    expect(await talk.locator("p").first().textContent()).toContain(`${grade.episode!.turns.length} turns`);
    // What the environment wrote down is text.
    expect(await talk.locator("dl").textContent()).toContain("<b>");

    const kinds = page.locator(".tokens .token");
    await kinds.first().waitFor();
    await page.getByRole("button", { name: "shown and written" }).click();
    const count = (kind: string) => page.locator(`.tokens .token.${kind}`).count();
    const counted = (await count("trained")) + (await count("sampled"));
    const turns = eventsNamed(events, "turn-sampled").filter(
      (turn) => turn.batch === batch && turn.group === group && turn.sample === sample,
    );
    const answers = eventsNamed(events, "group-sampled").find((one) => one.batch === batch && one.group === group)!;
    expect(counted).toBe(answers.samples[sample]!.tokens + turns.reduce((sum, { tokens }) => sum + tokens, 0));
    expect(await count("context")).toBe(grade.episode!.contextTokens);
    expect(await page.locator(".tokens-card .quiet").first().textContent()).toContain("that it was shown in between");
    expect(await overflow(page)).toBe(0);
    expect(await violations(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test("the overview has curves of episodes, and none where there are no episodes", async () => {
    const { page, server } = it;
    await visit(page, server.url, "#/run/doubles");
    await page
      .locator("figure", { hasText: "How episodes ended" })
      .or(page.locator("figure", { hasText: "Episodes" }))
      .first()
      .waitFor();
    await visit(page, server.url, `#/run/doubles/step/${episode.batch}`);
    expect(await page.locator(".tile", { hasText: "turns" }).count()).toBe(1);
  });
});
