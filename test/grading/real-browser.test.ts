// A real browser shows a page of another origin that tries to run programs on `./whet sandbox`. Skipped where there is no Chromium.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findOnPath } from "../../src/core/languages/machine.ts";
import { startFusionServer } from "../../src/sandbox/fusion/server.ts";
import { type Jail, openJail } from "../../src/sandbox/jail.ts";
import { temporaryFolders } from "../support/folders.ts";

const folder = temporaryFolders();
const browser = ["chromium", "chromium-browser", "google-chrome"].map(findOnPath).find(Boolean);
if (!browser) console.warn("skipping the real browser: no chromium on PATH");

/** Everything a page can send without, and with, a question in advance. */
const page = (target: string) => `<!doctype html><meta charset=utf-8><title>waiting</title><body><script>
const body = JSON.stringify({ code: "print(1)", language: "python" });
const tries = {
  json: { method: "POST", headers: { "content-type": "application/json" }, body },
  text: { method: "POST", mode: "no-cors", headers: { "content-type": "text/plain" }, body },
  blob: { method: "POST", mode: "no-cors", body: new Blob([body]) },
  form: { method: "POST", mode: "no-cors", body: new URLSearchParams({ x: body }) },
  ping: { method: "GET" },
};
(async () => {
  const seen = [];
  for (const [name, options] of Object.entries(tries)) {
    const path = name === "ping" ? "/v1/ping" : "/run_code";
    try {
      const answer = await fetch(${JSON.stringify(target)} + path, options);
      seen.push(name + ":" + (answer.type === "opaque" ? "opaque" : answer.status));
    } catch (error) { seen.push(name + ":refused"); }
  }
  await fetch("/done", { method: "POST", body: seen.join(" ") });
})();
</script>`;

test.skipIf(!browser)("a page of another origin runs nothing", { timeout: 120_000 }, async () => {
  const jail = await openJail({ slots: 1 });
  let executed = 0;
  const counting: Jail = {
    description: jail.description,
    run: jail.run.bind(jail),
    supports: (language) => jail.supports(language),
    close: () => jail.close(),
    execute: (...args) => {
      executed++;
      return jail.execute(...args);
    },
  };
  const server = await startFusionServer({ jail: counting, port: 0, concurrency: 1 });
  let finish: (seen: string) => void = () => {};
  const done = new Promise<string>((resolve) => {
    finish = resolve;
  });
  const site = createServer((request, response) => {
    if (request.url !== "/done") {
      response.writeHead(200, { "content-type": "text/html" }).end(page(server.url));
      return;
    }
    let text = "";
    request.on("data", (piece: Buffer) => {
      text += piece.toString();
    });
    request.on("end", () => {
      response.end();
      finish(text);
    });
  });
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  const address = `http://localhost:${(site.address() as AddressInfo).port}/`;
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"];
  const profile = `--user-data-dir=${join(folder(), "profile")}`;
  const child = spawn(browser!, [...flags, profile, address], { detached: true, stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  try {
    const late = new Promise<string>((resolve) =>
      setTimeout(() => resolve("the browser said nothing"), 90_000).unref(),
    );
    expect(await Promise.race([done, late])).toBe("json:refused text:opaque blob:opaque form:opaque ping:refused");
    expect(executed).toBe(0);
  } finally {
    // With all its processes: one that is still writing would keep the profile from being removed.
    process.kill(-child.pid!, "SIGKILL");
    await ended;
    site.closeAllConnections();
    await new Promise((resolve) => site.close(resolve));
    await server.close();
    await jail.close();
  }
});
