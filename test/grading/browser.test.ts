// What web pages can and cannot do to `./whet sandbox`, and what a hostile body costs.
import { request } from "undici";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isLoopback, refusalOf } from "../../src/core/loopback.ts";
import { excessOf } from "../../src/sandbox/fusion/modest.ts";
import { type FusionServer, startFusionServer } from "../../src/sandbox/fusion/server.ts";
import { type Jail, openJail } from "../../src/sandbox/jail.ts";
import { whet } from "./processes.ts";

let jail: Jail;
let server: FusionServer;
beforeAll(async () => {
  jail = await openJail({ slots: 1 });
  server = await startFusionServer({ jail, port: 0, concurrency: 1 });
}, 60_000);
afterAll(async () => {
  await server?.close();
  await jail?.close();
});

const body = JSON.stringify({ code: "print(1)", language: "python" });

async function post(headers: Record<string, string>, text = body): Promise<number> {
  const response = await request(`${server.url}/run_code`, { method: "POST", headers, body: text });
  await response.body.dump();
  return response.statusCode;
}

const json = { "content-type": "application/json" };

test("a program that speaks JSON to a loopback name is served", async () => {
  expect(await post(json)).toBe(200);
  expect(await post({ "content-type": "application/json; charset=utf-8", host: `localhost:${server.port}` })).toBe(200);
  expect(await post({ ...json, host: `[::1]:${server.port}` })).toBe(200);
  // A page that this server itself would serve.
  expect(await post({ ...json, origin: server.url, "sec-fetch-site": "same-origin" })).toBe(200);
});

test("what a page of another origin can send is refused", async () => {
  for (const origin of ["https://evil.example", "null", "http://localhost:3000", `http://localhost:${server.port}`])
    expect([origin, await post({ ...json, origin })]).toEqual([origin, 403]);
  for (const site of ["cross-site", "same-site"])
    expect([site, await post({ ...json, "sec-fetch-site": site })]).toEqual([site, 403]);
  // The kinds of body that need no question in advance.
  for (const type of [
    "text/plain;charset=UTF-8",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
  ])
    expect([type, await post({ "content-type": type })]).toEqual([type, 415]);
  expect(await post({})).toBe(415);
  const ping = await request(`${server.url}/v1/ping`, { headers: { origin: "https://evil.example" } });
  await ping.body.dump();
  expect(ping.statusCode).toBe(403);
  // The question in advance gets no permission.
  const asked = await request(`${server.url}/run_code`, {
    method: "OPTIONS",
    headers: { origin: "https://evil.example", "access-control-request-method": "POST" },
  });
  await asked.body.dump();
  expect([asked.statusCode, asked.headers["access-control-allow-origin"]]).toEqual([403, undefined]);
});

test("a name that points here is refused, whatever it is", async () => {
  for (const host of ["evil.example", `evil.example:${server.port}`, "127.0.0.1.evil.example", "[::2]", ""])
    expect([host, await post({ ...json, host })]).toEqual([host, 403]);
  expect(refusalOf({ host: "box.internal:8080" }, "10.0.0.5")).toBeUndefined();
  expect(["localhost", "127.9.9.9", "::1", "128.0.0.1", "127.0.0.1.x", "0.0.0.0"].map(isLoopback)).toEqual([
    ...[true, true, true, false, false, false],
  ]);
});

test("other addresses than loopback want a token, or to be told that there is none", async () => {
  const start = (more: object) => startFusionServer({ jail, port: 0, host: "0.0.0.0", concurrency: 1, ...more });
  await expect(start({})).rejects.toMatchObject({ code: "sandbox/token" });
  await (await start({ token: "secret" })).close();
  await (await start({ open: true })).close();
  const { code, stderr } = await whet(["sandbox", "host=0.0.0.0", "port=0"]).finished;
  expect([code, stderr]).toEqual([1, expect.stringContaining("[sandbox/token]")]);
}, 60_000);

test("bodies of millions of brackets or values are refused before they are built", async () => {
  const megabytes = 30 * 1024 ** 2;
  const nested = `{"code":"","language":"python","x":${"[".repeat(megabytes / 2)}${"]".repeat(megabytes / 2)}}`;
  const wide = `{"code":"","language":"python","x":[${"1,".repeat(megabytes / 2)}1]}`;
  for (const text of [nested, wide]) expect(await post(json, text)).toBe(422);
  expect(excessOf(Buffer.from(JSON.stringify({ a: "[".repeat(1000), b: '\\"[[' })))).toBeUndefined();
  expect(excessOf(Buffer.from('{"a": "never ends'))).toBeUndefined();
  const files = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`f${index}`, "YQ=="]));
  expect(await post(json, JSON.stringify({ code: "print(1)", language: "python", files }))).toBe(200);
}, 60_000);
