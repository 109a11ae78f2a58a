// The sinks against the programs they are meant for: TensorBoard's own reader, and the requests of the official W&B client. Those are
// large: WHET_COMPAT=1 ./whet test test/runs
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TensorBoardSink } from "../../src/runs/tensorboard.ts";
import { WandbSink } from "../../src/runs/wandb.ts";
import { openVenv } from "../support/venv.ts";

const run = promisify(execFile);
const compat = process.env["WHET_COMPAT"] === "1";
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "whet-readers-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.skipIf(!compat)("TensorBoard reads the event files", async ({ skip }) => {
  const venv = await openVenv(["tensorboard==2.21.0", "setuptools<81"]);
  if ("missing" in venv) {
    console.warn(`skipped: ${venv.missing}`);
    skip(venv.missing);
    return;
  }
  const sink = new TensorBoardSink(folder);
  for (let step = 0; step < 200; step += 50) sink.metrics({ step, mean_reward: step / 7, "optim/lr": 1e-3 });
  sink.close();
  const script = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1]).Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))`;
  const { stdout } = await run(venv.python, ["-c", script, folder]);
  const scalars = JSON.parse(stdout) as Record<string, [number, number][]>;
  expect(scalars["optim/lr"]).toEqual([0, 50, 100, 150].map((step) => [step, Math.fround(1e-3)]));
  expect(scalars["mean_reward"]).toEqual([0, 50, 100, 150].map((step) => [step, Math.fround(step / 7)]));
});

interface Recorded {
  path: string;
  authorization: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: whatever JSON the clients send
  body: any;
}

/** Answers as the service does, as far as its client needs, and keeps what it was sent. */
async function startRecorder() {
  const requests: Recorded[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      let bytes = Buffer.concat(chunks);
      if (request.headers["content-encoding"] === "gzip") bytes = gunzipSync(bytes);
      const path = request.url ?? "";
      const isJson = path === "/graphql" || path.endsWith("/file_stream");
      const body = isJson ? JSON.parse(bytes.toString()) : undefined;
      requests.push({ path, authorization: request.headers.authorization, body });
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(path === "/graphql" ? { data: answer(body.query, body.variables) } : {}));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const answer = (query: string, variables: Record<string, unknown> = {}) => ({
    viewer: { id: "u", entity: "tester", username: "tester", email: "", flags: "{}", teams: { edges: [] } },
    serverInfo: { cliVersionInfo: {}, latestLocalVersionInfo: null, features: [] },
    ...(query.includes("upsertBucket") && {
      upsertBucket: {
        bucket: {
          id: "r",
          name: variables["name"],
          displayName: variables["displayName"] ?? "",
          historyLineCount: 0,
          project: { id: "p", name: variables["project"], entity: { id: "e", name: "tester" } },
        },
        inserted: true,
      },
    }),
    ...(query.includes("createRunFiles") && {
      createRunFiles: {
        runID: "r",
        uploadHeaders: [],
        files: (variables["files"] as string[]).map((name) => ({
          name,
          uploadUrl: `http://127.0.0.1:${port}/upload/${name}`,
        })),
      },
    }),
  });
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    close: () => new Promise<void>((resolve) => server.close(() => resolve()).closeAllConnections()),
  };
}

/** What a recording says about the run, without what differs from run to run (times, versions) or is the client's own bookkeeping. */
function essence(requests: readonly Recorded[]) {
  const graphql = requests.filter(({ path }) => path === "/graphql").map(({ body }) => body);
  const upsert = graphql.find(({ query }) => query.includes("upsertBucket"));
  const streams = requests.filter(({ path }) => path.endsWith("/file_stream"));
  const parse = (line: string) => {
    const { _timestamp, _runtime, _wandb, ...rest } = JSON.parse(line) as Record<string, unknown>;
    return rest;
  };
  const history: unknown[] = [];
  for (const { body } of streams) {
    const chunk = body.files?.["wandb-history.jsonl"];
    if (!chunk) continue;
    expect(chunk.offset).toBe(history.length);
    history.push(...chunk.content.map(parse));
  }
  const { _wandb, ...config } = JSON.parse(upsert.variables.config) as Record<string, unknown>;
  const last = streams.at(-1)!.body;
  return {
    authorization: [
      ...new Set(
        requests
          .filter(({ path }) => !path.startsWith("/upload") && !path.startsWith("/sdk"))
          .map((r) => r.authorization),
      ),
    ],
    asksViewerFirst: graphql[0].query.includes("viewer"),
    upsert: {
      name: upsert.variables.name,
      project: upsert.variables.project,
      displayName: upsert.variables.displayName,
    },
    config,
    streamPath: [...new Set(streams.map(({ path }) => path))],
    history,
    summary: parse(last.files["wandb-summary.json"].content[0]),
    ending: { complete: last.complete, exitcode: last.exitcode },
  };
}

test.skipIf(!compat)(
  "the W&B sink tells the service what the official client tells it for the same run",
  async ({ skip }) => {
    const venv = await openVenv(["wandb==0.31.0"]);
    if ("missing" in venv) {
      console.warn(`skipped: ${venv.missing}`);
      skip(venv.missing);
      return;
    }
    const key = "0123456789abcdef".repeat(3).slice(0, 40);
    const config = { learning_rate: 1e-3, model_name: "nano-coder" };
    const steps = [0, 1, 2].map((step) => ({ mean_reward: step / 4, "optim/lr": 1e-3 }));

    const theirs = await startRecorder();
    const script = `
import json, sys, wandb
run = wandb.init(project="code-rl", name="first try", id="abc12345", config=json.loads(sys.argv[1]), dir=sys.argv[3],
  settings=wandb.Settings(disable_git=True, console="off", x_disable_stats=True, x_disable_meta=True, disable_code=True))
for step, metrics in enumerate(json.loads(sys.argv[2])): run.log(metrics, step=step)
run.finish()`;
    await run(venv.python, ["-c", script, JSON.stringify(config), JSON.stringify(steps), folder], {
      env: { PATH: process.env["PATH"], HOME: folder, WANDB_BASE_URL: theirs.url, WANDB_API_KEY: key },
      timeout: 120_000,
    });
    await theirs.close();

    const ours = await startRecorder();
    const sink = await WandbSink.start({
      apiKey: key,
      project: "code-rl",
      name: "first try",
      runId: "abc12345",
      config,
      baseUrl: ours.url,
      intervalMs: 1,
    });
    for (const [step, metrics] of steps.entries()) {
      sink.metrics({ step, ...metrics });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await sink.close(0);
    await ours.close();

    expect(essence(ours.requests)).toEqual(essence(theirs.requests));
  },
);

test("a key that the service does not know, and a service that is not there, are said and not fatal", async () => {
  const options = { apiKey: "k".repeat(40), project: "p", name: "n", runId: "r", config: {} };
  const server = createServer((_, response) => response.writeHead(401).end("no"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await expect(WandbSink.start({ ...options, baseUrl })).rejects.toMatchObject({ code: "runs/wandb-refused" });
  await new Promise<void>((resolve) => server.close(() => resolve()).closeAllConnections());
  await expect(WandbSink.start({ ...options, baseUrl })).rejects.toThrow(/fetch failed/);
});
