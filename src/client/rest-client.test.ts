// Plain calls: routes, pages, redirects and what is waited for.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ScriptedServer } from "../../test/support/scripted-server.ts";
import { ServiceClient } from "./index.ts";

let server: ScriptedServer;
let service: ServiceClient;

beforeEach(async () => {
  server = await ScriptedServer.start();
  const timings = { retryMaxMs: 4 };
  service = new ServiceClient({ apiKey: "tml-test", baseUrl: server.url, timings });
});

afterEach(async () => {
  await service.close();
  await server.close();
});

const refusal = (status: number) => ({ status, json: { detail: "no" } });

describe("redirects", () => {
  test("one on the same server is followed, with the key; one that leaves it is not", async () => {
    server.script("/get_server_capabilities", { status: 307, headers: { location: "/api/v1/elsewhere?x=1" } });
    server.script("/elsewhere", { json: { supported_models: [] } });
    await service.getServerCapabilities();
    expect(server.requests.at(-1)).toMatchObject({ url: "/api/v1/elsewhere?x=1" });
    server.script("/get_server_capabilities", { status: 302, headers: { location: "https://evil.example/api/v1/x" } });
    await expect(service.getServerCapabilities()).rejects.toMatchObject({ code: "client/bad-response" });
  });
});

describe("REST", () => {
  test("an archive is waited for while it is built; its redirect is not followed", async () => {
    const rest = service.createRestClient();
    const route = "/training_runs/s1:train:0/checkpoints/sampler_weights/a/archive";
    const expires = "Wed, 01 Jan 2031 00:00:00 GMT";
    server.script(route, refusal(503), { status: 302, headers: { location: "https://files.example/x.tar", expires } });
    const archive = await rest.getCheckpointArchiveUrlFromTinkerPath("tinker://s1:train:0/sampler_weights/a");
    expect(archive).toEqual({ url: "https://files.example/x.tar", expires: new Date(expires) });
    server.script(route, { json: { url: "https://files.example/y.tar", expires: "2031-01-01T00:00:00Z" } });
    expect((await rest.getCheckpointArchiveUrl("s1:train:0", "sampler_weights/a")).url).toMatch(/y\.tar$/);
  });

  test("SkyRL's archive route, which has the bare name, is found", async () => {
    const rest = service.createRestClient();
    server.script("/training_runs/m/checkpoints/sampler_weights/a/archive", refusal(405));
    server.script("/training_runs/m/checkpoints/a/archive", { status: 302, headers: { location: "/download/a" } });
    const { url, expires } = await rest.getCheckpointArchiveUrlFromTinkerPath("tinker://m/a");
    expect(url).toBe(`${server.url}/download/a`);
    expect(expires.getTime()).toBeGreaterThan(Date.now());
  });

  test("checkpoints are changed by their path, slash and all", async () => {
    const rest = service.createRestClient();
    const base = "/training_runs/r/checkpoints/weights/a";
    for (const route of [base, `${base}/publish`, `${base}/publish`, `${base}/ttl`, `${base}/ttl`])
      server.script(route, { status: 204 });
    await rest.deleteCheckpointFromTinkerPath("tinker://r/weights/a");
    await rest.publishCheckpointFromTinkerPath("tinker://r/weights/a");
    await rest.unpublishCheckpointFromTinkerPath("tinker://r/weights/a");
    await rest.setCheckpointTtlFromTinkerPath("tinker://r/weights/a", 60);
    await rest.setCheckpointTtlFromTinkerPath("tinker://r/weights/a", null);
    expect(server.requests.slice(1).map(({ method, route, json }) => [method, route, json])).toEqual([
      ["DELETE", base, {}],
      ["POST", `${base}/publish`, {}],
      ["DELETE", `${base}/publish`, {}],
      ["PUT", `${base}/ttl`, { ttl_seconds: 60 }],
      ["PUT", `${base}/ttl`, { ttl_seconds: null }],
    ]);
    await expect(rest.deleteCheckpointFromTinkerPath("weights/a")).rejects.toMatchObject({ code: "protocol/bad-path" });
  });

  test("listings are paged and typed", async () => {
    const rest = service.createRestClient();
    const run = {
      training_run_id: "r",
      base_model: "tiny",
      model_owner: "me",
      is_lora: true,
      last_request_time: "2026-01-01T00:00:00",
    };
    const checkpoint = {
      checkpoint_id: "weights/a",
      checkpoint_type: "training",
      time: "2026-01-01T00:00:00Z",
      tinker_path: "tinker://r/weights/a",
    };
    server.script("/training_runs", {
      json: { training_runs: [run], cursor: { offset: 5, limit: 1, total_count: 9 } },
    });
    server.script("/training_runs/r", { json: { ...run, last_checkpoint: checkpoint } });
    server.script("/training_runs/r/checkpoints", { json: { checkpoints: [checkpoint] } });
    server.script("/checkpoints", { json: { checkpoints: [checkpoint], cursor: null } });
    server.script("/sessions", { json: { sessions: ["s1"] } });
    server.script("/sessions/s1", { json: { training_run_ids: ["r"], sampler_ids: [] } });
    server.script("/sessions/s1/project", { status: 204 });
    server.script(
      "/sessions/s1/trace_export",
      { json: { status: "pending" } },
      { json: { status: "ready", url: "u" } },
    );
    server.script("/samplers/s1:sample:0", {
      json: { sampler_id: "s1:sample:0", base_model: "tiny", model_path: null },
    });
    server.script("/audit", { json: { entries: [{ timestamp: "2026-01-01T00:00:00Z", event: "x" }] } });
    const usage = {
      bucket_start: "2026-01-01T00:00:00Z",
      bucket_end: "2026-01-01T01:00:00Z",
      event_info: { type: "training", token_count: 5 },
    };
    server.script("/billing/usage/events", { json: { data: [usage], sessions: {} } });

    const runs = await rest.listTrainingRuns({ limit: 1, offset: 5, projectId: "p" });
    expect(runs.cursor).toEqual({ offset: 5, limit: 1, totalCount: 9 });
    expect(runs.trainingRuns[0]!.lastRequestTime).toEqual(new Date("2026-01-01T00:00:00Z"));
    expect(server.requests.at(-1)!.url).toMatch(/\?limit=1&offset=5&access_scope=owned&project_id=p$/);
    expect((await rest.getTrainingRunByTinkerPath("tinker://r/weights/a")).lastCheckpoint?.checkpointId).toBe(
      "weights/a",
    );
    expect((await rest.listCheckpoints("r")).checkpoints[0]!.public).toBe(false);
    expect((await rest.listUserCheckpoints()).cursor).toBeUndefined();
    expect(await rest.listSessions()).toEqual(["s1"]);
    expect(await rest.getSession("s1", { accessScope: "accessible" })).toEqual({
      trainingRunIds: ["r"],
      samplerIds: [],
    });
    await rest.assignSessionProject("s1", "p");
    expect(await rest.exportSessionTrace("s1")).toBe("u");
    expect((await rest.getSampler("s1:sample:0")).modelPath).toBeUndefined();
    expect((await rest.getAuditLog({ day: "2026-01-01" })).entries[0]!.event).toBe("x");
    const bill = await rest.getBillingUsage(new Date("2026-01-01T00:00:00Z"), new Date("2026-01-02T00:00:00Z"));
    expect(bill.data[0]!.eventInfo).toEqual({ type: "training", tokenCount: 5 });
    await expect(rest.whoami()).rejects.toMatchObject({ code: "client/no-identity" });
  });
});
