// Who gets an answer from a dashboard: over real sockets, with every header that a browser or an attacker would send.
import { mkdirSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { foldersInMemory } from "../../test/support/folders.ts";
import { Journal } from "../runs/journal.ts";
import { type DashboardServer, startDashboard } from "./server.ts";

const folder = foldersInMemory();
let server: DashboardServer;
let port: number;
let token: string;

beforeAll(async () => {
  const root = folder();
  const run = join(root, "one");
  mkdirSync(run);
  const journal = await Journal.open(run);
  await journal.append({ type: "opened", pid: 1 });
  await journal.append({ type: "started", session: 0, config: { model_name: "secret-model" }, changes: [] });
  await journal.close();
  server = await startDashboard({ roots: [root], port: 0 });
  const url = new URL(server.url);
  port = Number(url.port);
  token = url.pathname.split("/")[1]!;
});
afterAll(() => server.close());

interface Answer {
  status: number;
  body: string;
  headers: Record<string, string | string[] | undefined>;
}

function ask(path: string, { method = "GET", body = "", ...headers }: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: "127.0.0.1", port, path, method, headers: { host: `127.0.0.1:${port}`, ...headers } },
      (response) => {
        let text = "";
        response.on("data", (part: Buffer) => {
          text += part.toString();
        });
        response.on("end", () => resolve({ status: response.statusCode!, body: text, headers: response.headers }));
      },
    );
    asked.on("error", reject);
    asked.end(body);
  });
}

const control = (headers: Record<string, string>) =>
  ask(`/${token}/api/run/one/control`, {
    method: "POST",
    body: '{"kind":"pause"}',
    "content-type": "application/json",
    ...headers,
  });

test("who has the link gets the page, its parts and the run", async () => {
  for (const path of [
    "",
    "page/app.js",
    "page/style.css",
    "vendor/uplot/uPlot.esm.js",
    "vendor/diff/diff/base.js",
    "api/runs",
    "api/run/one",
  ]) {
    const answer = await ask(`/${token}/${path}`);
    expect(answer.status, path).toBe(200);
  }
  expect((await ask(`/${token}/api/run/one`)).body).toContain("secret-model");
  expect(await ask(`/${token}`)).toMatchObject({ status: 302, headers: { location: `/${token}/` } });
  expect((await ask(`/${token}/`, { host: `localhost:${port}` })).status).toBe(200);
  // Through a tunnel the port is another one.
  expect((await ask(`/${token}/`, { host: "localhost:9999" })).status).toBe(200);
});

const refused: Record<string, [path: () => string, headers?: Record<string, string>]> = {
  "no token": [() => "/"],
  "no token, an address of the page": [() => "/page/app.js"],
  "no token, an address of a run": [() => "/api/runs"],
  "another token": [() => `/${"A".repeat(token.length)}/api/runs`],
  "a part of the token": [() => `/${token.slice(0, -1)}/api/runs`],
  "the token in the wrong case": [() => `/${token.toUpperCase()}x/api/runs`],
  "a query instead of the token": [() => `/?token=x`],
  "another Host": [() => `/${token}/api/runs`, { host: "evil.example" }],
  "another Host with our port": [() => `/${token}/api/runs`, { host: "evil.example:80" }],
  "another Origin": [() => `/${token}/api/runs`, { origin: "https://evil.example" }],
  "the Origin null": [() => `/${token}/api/runs`, { origin: "null" }],
  "a page of another site": [() => `/${token}/api/runs`, { "sec-fetch-site": "cross-site" }],
  "another port of this machine": [() => `/${token}/api/runs`, { "sec-fetch-site": "same-site" }],
  "a frame in another site": [
    () => `/${token}/`,
    { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
  ],
};

test.each(Object.entries(refused))("%s gets nothing", async (_, [path, headers]) => {
  const answer = await ask(path(), headers);
  expect(answer.status).toBe(403);
  expect(answer.body).toBe("");
});

test("a request without a Host gets nothing", async () => {
  const text = await new Promise<string>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(`GET /${token}/api/runs HTTP/1.0\r\n\r\n`));
    let received = "";
    socket.on("data", (part) => {
      received += part.toString();
    });
    socket.on("close", () => resolve(received));
  });
  expect(text).toMatch(/^HTTP\/1\.1 403 /);
  expect(text).not.toContain("changedAt");
});

test("a link clicked elsewhere opens the page, and only the page", async () => {
  const clicked = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
  expect((await ask(`/${token}/`, clicked)).status).toBe(200);
  expect((await ask(`/${token}/api/runs`, clicked)).status).toBe(403);
});

test("a control comes from the page itself", async () => {
  const origin = `http://127.0.0.1:${port}`;
  expect((await control({})).status).toBe(403);
  expect((await control({ origin: "https://evil.example" })).status).toBe(403);
  expect((await control({ origin, "content-type": "text/plain" })).status).toBe(403);
  expect((await control({ origin, host: "evil.example", "sec-fetch-site": "same-origin" })).status).toBe(403);
  // Nobody trains it.
  expect(await control({ origin })).toMatchObject({ status: 400, body: expect.stringContaining("runs/not-live") });
  const nonsense = await ask(`/${token}/api/run/one/control`, {
    method: "POST",
    origin,
    "content-type": "application/json",
    body: '{"kind":"rm -rf"}',
  });
  expect(nonsense).toMatchObject({ status: 400, body: expect.stringContaining("dashboard/control") });
  const large = await ask(`/${token}/api/run/one/control`, {
    method: "POST",
    origin,
    "content-type": "application/json",
    body: "x".repeat(100_000),
  });
  expect(large.status).toBe(413);
});

test("every answer, a refusal too, carries the policy", async () => {
  for (const path of ["/", `/${token}/`, `/${token}/api/runs`, `/${token}/page/app.js`, `/${token}/nothing`]) {
    const { headers } = await ask(path);
    expect(headers["content-security-policy"]).toContain(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'",
    );
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
    });
    expect(headers["access-control-allow-origin"]).toBeUndefined();
    expect(headers["set-cookie"]).toBeUndefined();
  }
});

test("no address leads out of the page's files or the listed runs", async () => {
  const tries = [
    "page/../server.ts",
    "page/%2e%2e/server.ts",
    "page/..%2fserver.ts",
    "page/tsconfig.json",
    "page/vendor.d.ts",
    "vendor/../../../package.json",
    "vendor/uplot/package.json",
    "vendor/constructor",
    "api/run/..%2f..%2fetc",
    "api/run/%2fetc",
    "api/run/%ff",
    "api/run/__proto__",
    "api/run/one/step/0/../../..",
    "api/run/one/step/99999999999",
    "api/run/one/step/-1",
    "api/run/one/step/0",
    "api/run/one/problem?id=__proto__",
    "api/nothing",
  ];
  for (const path of tries) expect((await ask(`/${token}/${path}`)).status, path).toBe(404);
});

test("a taken port is said, and says what to do", async () => {
  await expect(startDashboard({ roots: [], port })).rejects.toThrow(
    /dashboard cannot listen on 127\.0\.0\.1:\d+ .*port=0/,
  );
});
