import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { WandbSink } from "./wandb.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** The service: takes lines at their offsets; while `away`, answers 503. */
async function startService(historyLineCount = 0) {
  const state = { away: false, refusals: 0, lines: [] as Record<string, number>[], ended: undefined as unknown };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
      if (request.url === "/graphql") {
        const bucket = { name: "r", historyLineCount, project: { name: "p", entity: { name: "e" } } };
        const data = { viewer: { entity: "e" }, upsertBucket: { bucket } };
        response.end(JSON.stringify({ data }));
        return;
      }
      if (state.away) {
        state.refusals++;
        response.writeHead(503).end("down");
        return;
      }
      const history = (body["files"] as Record<string, { offset: number; content: string[] }>)["wandb-history.jsonl"];
      for (const [index, line] of (history?.content ?? []).entries())
        state.lines[history!.offset - historyLineCount + index] = JSON.parse(line) as Record<string, number>;
      if (body["complete"]) state.ended = body["exitcode"];
      response.end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => server.close().closeAllConnections());
  return { state, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const open = (baseUrl: string, troubles: string[] = []) =>
  WandbSink.start({
    apiKey: "k".repeat(40),
    project: "p",
    name: "n",
    runId: "r",
    config: {},
    baseUrl,
    intervalMs: 5,
    closeMs: 20_000,
    onTrouble: (message) => troubles.push(message),
  });

test("an outage costs no step, and the run's exit code is told", async () => {
  const { state, baseUrl } = await startService();
  const troubles: string[] = [];
  const sink = await open(baseUrl, troubles);
  sink.metrics({ step: 0, loss: 1 });
  await sleep(100);
  state.away = true;
  sink.metrics({ step: 1, loss: 2 });
  while (troubles.length === 0) await sleep(20);
  sink.metrics({ step: 2, loss: 3 });
  state.away = false;
  sink.metrics({ step: 3, loss: 4 });
  await sink.close(1);
  expect(state.refusals).toBeGreaterThan(0);
  expect(state.lines.map(({ _step, loss }) => [_step, loss])).toEqual([0, 1, 2, 3].map((step) => [step, step + 1]));
  expect(state.ended).toBe(1);
  expect(troubles).toEqual([expect.stringContaining("does not answer"), expect.stringContaining("answers again")]);
});

test("a run that goes on sends what the service never got of it", async () => {
  const { state, baseUrl } = await startService(2);
  const sink = await open(baseUrl);
  sink.catchUp([0, 1, 2, 3].map((step) => ({ step, loss: step })));
  sink.metrics({ step: 4, loss: 4 });
  await sink.close(0);
  expect(state.lines.map(({ _step }) => _step)).toEqual([2, 3, 4]);
  expect(state.ended).toBe(0);
});
