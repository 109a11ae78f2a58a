// Adapters from servers: an archive, external weights where there is none, and what a broken or hostile server sends instead.

import { pbkdf2 } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, expect, test } from "vitest";
import { temporaryFolders } from "../../test/support/folders.ts";
import { APIStatusError, type ServiceClient } from "../client/index.ts";
import { tarOf } from "../server/archive.ts";
import { downloadAdapter } from "./download.ts";

const newFolder = temporaryFolders();
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** Answers the nth request with the nth body; null breaks the connection in the middle. */
async function serve(...bodies: (Buffer | null)[]): Promise<string> {
  let count = 0;
  const server = createServer((_, response) => {
    const body = bodies[Math.min(count++, bodies.length - 1)];
    if (body) return void response.end(body);
    response.writeHead(200, { "content-length": "100000" });
    response.write("half of it");
    setTimeout(() => response.destroy(), 20);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/file`;
}

async function tar(files: Record<string, string>): Promise<Buffer> {
  const dir = newFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  const parts: Uint8Array[] = [];
  for await (const part of tarOf(dir)) parts.push(part);
  return Buffer.concat(parts);
}

const refused = (status: number) =>
  Promise.reject(new APIStatusError("client/not-found", `status ${status}`, status, {}));

/** The calls that a download makes of a service. */
function service(calls: {
  archive: () => Promise<string>;
  urls?: () => Promise<Record<string, string>>;
  deleted?: string[];
}): ServiceClient {
  const expires = new Date(Date.now() + 60_000);
  const rest = {
    getCheckpointArchiveUrlFromTinkerPath: async () => ({ url: await calls.archive(), expires }),
    getExternalWeightsUrls: async () => ({ urls: await (calls.urls?.() ?? refused(404)), expires }),
    deleteCheckpointFromTinkerPath: async (path: string) => void calls.deleted?.push(path),
  };
  const training = {
    saveWeightsExternal: () => ({ result: async () => ({ path: "tinker://r/external_weights/export" }) }),
  };
  return {
    createRestClient: () => rest,
    createTrainingClientFromState: () => (calls.urls ? Promise.resolve(training) : refused(404)),
  } as unknown as ServiceClient;
}

const checkpoint = { name: "final", sampler: "tinker://r/sampler_weights/final", state: "tinker://r/weights/final" };
const options = { signal: new AbortController().signal, say() {}, retryDelayMs: 1 };
const files = {
  "adapter_config.json": "{}",
  "adapter_model.safetensors": "weights",
  "optimizer.safetensors": "not wanted",
};
const wanted = ["adapter_config.json", "adapter_model.safetensors"];

test.each(["plain", "gzipped", "after a broken connection"])("an archive, %s", async (how) => {
  const archive = await tar(files);
  const url = await serve(
    ...(how === "after a broken connection" ? [null, archive] : [how === "plain" ? archive : gzipSync(archive)]),
  );
  const dir = newFolder();
  await downloadAdapter(service({ archive: async () => url }), checkpoint, dir, options);
  expect(readdirSync(dir).sort()).toEqual(wanted);
  expect(readFileSync(join(dir, "adapter_model.safetensors"), "utf8")).toBe("weights");
});

test("external weights where the server keeps no archives; the copy is deleted", async () => {
  // Keeps the threads busy that open files, so that they open late, as under load.
  for (let thread = 0; thread < 4; thread++) pbkdf2("", "", 300_000, 64, "sha512", () => {});
  const [config, weights] = [await serve(Buffer.from("{}")), await serve(null, Buffer.from("weights"))];
  const deleted: string[] = [];
  const dir = newFolder();
  const urls = async () => ({
    "adapter_model.safetensors": weights,
    "sub/adapter_config.json": config,
    "other.bin": config,
  });
  await downloadAdapter(service({ archive: () => refused(404), urls, deleted }), checkpoint, dir, options);
  expect(readdirSync(dir).sort()).toEqual(wanted);
  expect(deleted).toEqual(["tinker://r/external_weights/export"]);
});

test("a checkpoint that is gone, an archive that is none, one without an adapter: each is named, and nothing is left", async () => {
  const dir = newFolder();
  const download = (client: ServiceClient) => downloadAdapter(client, checkpoint, dir, options);
  await expect(download(service({ archive: () => refused(404) }))).rejects.toMatchObject({
    code: "export/checkpoint-gone",
  });
  const page = await serve(Buffer.from("<html>sign in</html>".repeat(50)));
  await expect(download(service({ archive: async () => page }))).rejects.toMatchObject({ code: "archive/damaged" });
  const other = await serve(await tar({ "model.bin": "x" }));
  await expect(download(service({ archive: async () => other }))).rejects.toThrow(/holds no adapter_config.json/);
  await expect(download(service({ archive: async () => "file:///etc/passwd" }))).rejects.toMatchObject({
    code: "export/download",
  });
  await expect(download(service({ archive: () => refused(401) }))).rejects.toThrow("status 401");
  expect(readdirSync(dir)).toEqual([]);
});
