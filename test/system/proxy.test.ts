// Everything that goes out to a network goes through the proxy that the environment names: a real one, which tunnels to a real TLS server
// and forwards plain requests, wants a password, and refuses.
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { typescriptFlags } from "../../src/core/workers.ts";
import { type ServeProcess, startServe } from "../contract/serve-process.ts";
import { type StandInHub, startHub } from "../data/hub-stand-in.ts";
import { foldersInMemory } from "../support/folders.ts";
import { type HttpProxy, startProxy, startTls } from "../support/http-proxy.ts";
import { startSandbox } from "../support/sandbox-process.ts";
import { writeTinyModel } from "../support/tiny-model.ts";
import { cleanEnvironment, runWhet } from "../support/whet.ts";

const newFolder = foldersInMemory();
const login = "me:hush/hush@hush";
const written = "me:hush%2Fhush%40hush";
let server: ServeProcess;
let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let hub: StandInHub;
let tls: Awaited<ReturnType<typeof startTls>>;
let proxy: HttpProxy;
let env: Record<string, string>;

beforeAll(async () => {
  [server, sandbox, hub] = await Promise.all([
    startServe(["engine=simulated", `state_dir=${newFolder()}`]),
    startSandbox(),
    startHub([{ name: "datasets/owner/data", files: { "x.jsonl": "{}\n" } }]),
  ]);
  const port = Number(new URL(server.baseUrl).port);
  tls = await startTls("tinker.example", port, newFolder());
  const hubPort = Number(new URL(hub.endpoint).port);
  const hosts = {
    "tinker.example": tls.port,
    "plain.example": port,
    "sandbox.example": sandbox.port,
    "hub.example": hubPort,
  };
  proxy = await startProxy(hosts, login);
  const address = `http://${written}@127.0.0.1:${proxy.port}`;
  env = { HTTPS_PROXY: address, http_proxy: address, NODE_EXTRA_CA_CERTS: tls.ca, TINKER_API_KEY: "tml-local" };
});
afterAll(async () => {
  await Promise.all([server?.close(), sandbox?.stop(), hub?.close(), tls?.close(), proxy?.close()]);
});
beforeEach(() => {
  proxy.seen.length = 0;
  proxy.refuse = undefined;
});

function train(baseUrl: string, given: Record<string, string>, more: readonly string[] = []) {
  const folder = newFolder();
  const [data, model] = [join(folder, "problems.jsonl"), join(folder, "model")];
  const tests = JSON.stringify([{ input: "1 2\n", output: "3\n", testtype: "stdin" }]);
  writeFileSync(data, `${JSON.stringify({ id: "sum", problem: "Add two numbers.", tests })}\n`);
  mkdirSync(model);
  writeTinyModel(model);
  const settings =
    "model_name=whetstone/simulated renderer_name=qwen3_instruct eval_every=0 max_steps=2 max_tokens=8 prompts_per_step=2 completions_per_prompt=2 min_generation=8 context_window=4096";
  const args = [`base_url=${baseUrl}`, `tokenizer=${model}`, `train_data=${data}`, ...settings.split(" "), ...more];
  return runWhet(["train", ...args], { env: given });
}

const secrets = new RegExp(`hush|${Buffer.from(login).toString("base64")}`);

test("a run trains on a TLS server and a sandbox behind the proxy, and its password is nowhere", async () => {
  const path = join(newFolder(), "run");
  const result = await train("https://tinker.example", { ...env, SANDBOX_URL: "http://sandbox.example" }, [
    `log_path=${path}`,
  ]);
  expect(result.stderr).toContain("2 steps in");
  expect(new Set(proxy.seen.filter((line) => line.startsWith("CONNECT")))).toEqual(
    new Set(["CONNECT tinker.example:443"]),
  );
  expect(proxy.seen).toContain("POST http://sandbox.example/run_code");
  expect(result.stderr + result.stdout).not.toMatch(secrets);
  for (const name of readdirSync(path, { recursive: true, encoding: "utf8" }))
    if (/json|log$|journal/.test(name) && !/journal$|rollouts$|engine$/.test(name))
      expect(readFileSync(join(path, name), "latin1")).not.toMatch(secrets);
});

/** Runs a program of ours in a process of its own, which reads certificates when it starts; its standard input ends when `until` is true. */
async function runModule(text: string, until = () => true): Promise<string> {
  const module = `import { ServiceClient } from ${JSON.stringify(new URL("../../src/client/index.ts", import.meta.url).href)};
    import { Hub } from ${JSON.stringify(new URL("../../src/hub/hub.ts", import.meta.url).href)};
    import { WandbSink } from ${JSON.stringify(new URL("../../src/runs/wandb.ts", import.meta.url).href)};
    ${text}`;
  const args = [...typescriptFlags, "--input-type=module", "-e", module];
  const running = promisify(execFile)(process.execPath, args, { env: cleanEnvironment(env) });
  while (!until() && running.child.exitCode === null) await setTimeout(20);
  running.child.stdin?.end();
  return (await running).stdout;
}

test.each(["https://tinker.example", "http://plain.example"])(
  "heartbeats of a session at %s go through it",
  async (baseUrl) => {
    const beats = baseUrl.startsWith("https:")
      ? /^CONNECT tinker\.example:443/
      : /^POST http:\/\/plain\.example\/api\/v1\/session_heartbeat/;
    const beaten = () => proxy.seen.filter((line) => beats.test(line)).length > 8;
    const reports = await runModule(
      `
    const news = [];
    const service = new ServiceClient({ baseUrl: "${baseUrl}", timings: { heartbeatIntervalMs: 20 }, onOutage: (one) => news.push(one) });
    await service.createSamplingClient({ baseModel: "whetstone/simulated" });
    await new Promise((resolve) => process.stdin.resume().once("end", resolve));
    await service.close();
    console.log(JSON.stringify(news));`,
      beaten,
    );
    expect(JSON.parse(reports)).toEqual([]);
  },
);

test("the hub and what it redirects to, and Weights & Biases, each by its own address", async () => {
  const said = await runModule(`
    const hub = new Hub({ endpoint: "http://hub.example", cacheFolder: ${JSON.stringify(newFolder())} });
    const snapshot = await hub.snapshot({ type: "dataset", id: "owner/data" });
    await hub.download(snapshot, snapshot.files[0]);
    console.log(snapshot.files[0].path);
    await WandbSink.start({ apiKey: "k", project: "p", name: "n", runId: "r", config: {}, baseUrl: "http://plain.example" })
      .catch((error) => console.log(error.message));`);
  expect(said).toMatch(/^x\.jsonl\nWeights & Biases answered 404/);
  expect(proxy.seen.some((line) => line.startsWith("GET http://hub.example/api/datasets/owner/data"))).toBe(true);
  expect(proxy.seen).toContain("POST http://plain.example/graphql");
});

const models = (baseUrl: string, given: Record<string, string> = {}) =>
  runWhet(["models", `base_url=${baseUrl}`], { env: { ...env, ...given } });

test("NO_PROXY decides whether the proxy is asked; a proxy that is not there is named", async () => {
  // Each of them waits until the client gives up.
  const gone = { HTTPS_PROXY: "http://me:hush@127.0.0.1:9", http_proxy: "http://me:hush@127.0.0.1:9" };
  const [listed, all, ...withoutProxy] = await Promise.all([
    models("https://tinker.example", { NO_PROXY: "other.example, .example:443" }),
    models("https://tinker.example", { no_proxy: "*" }),
    models("https://tinker.example", gone),
    models("http://plain.example", gone),
  ]);
  expect(proxy.seen).toEqual([]);
  for (const { code, stderr } of [listed, all]) {
    // Without the proxy nobody finds the name.
    expect(stderr).toMatch(/host not found|EAI_AGAIN/);
    expect(code).toBe(1);
  }
  for (const { stderr } of withoutProxy) {
    expect(stderr).toMatch(/the proxy http:\/\/127\.0\.0\.1:9 \(\w+\) cannot be reached.*ECONNREFUSED/s);
    expect(stderr).not.toMatch(/hush|\n\s+at /);
  }
  expect((await models("https://tinker.example", { NO_PROXY: "tinker.example:8443" })).code).toBe(0);
  expect(proxy.seen.length).toBeGreaterThan(0);
});

test("this machine is never asked for through it, unless NO_PROXY says so; one that finds no way says so", async () => {
  const direct = await models(server.baseUrl);
  expect([direct.code, proxy.seen]).toEqual([0, []]);
  proxy.refuse = 502;
  const [asked, lost] = await Promise.all([
    models(server.baseUrl, { NO_PROXY: "<-loopback>" }),
    models("https://tinker.example"),
  ]);
  expect(asked.code).toBe(1);
  expect(proxy.seen).toContainEqual(expect.stringContaining(new URL(server.baseUrl).host));
  expect(lost.stderr).toMatch(/has no way to tinker\.example:443: 502.*\[client\/connection\]/s);
});

test.each(["https://tinker.example", "http://plain.example"])(
  "a proxy that refuses a login is one clear error, at once: %s",
  async (baseUrl) => {
    const wrong = `http://me:other-hush@127.0.0.1:${proxy.port}`;
    const refused = await models(baseUrl, { HTTPS_PROXY: wrong, http_proxy: wrong });
    expect(refused.stderr).toMatch(
      /The proxy http:\/\/127\.0\.0\.1:\d+ \((HTTPS_PROXY|http_proxy)\) wants a user and password.*\[network\/proxy-login\]/s,
    );
    expect(refused.stderr).not.toMatch(/hush|\n\s+at /);
    expect([refused.code, proxy.seen.length]).toEqual([1, 1]);
  },
);

test("a proxy that forbids a host says so, at once", async () => {
  proxy.refuse = 403;
  expect((await models("https://tinker.example")).stderr).toMatch(
    /refuses connections to tinker\.example:443 \(403\).*NO_PROXY.*\[network\/proxy-refused\]/s,
  );
});
