import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type StandInHub, startHub } from "../../test/data/hub-stand-in.ts";
import { temporaryFolders } from "../../test/support/folders.ts";
import { Hub, type HubFile, type HubSnapshot, isHubId } from "./hub.ts";

const newFolder = temporaryFolders();
const large = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7919) % 251));
const dataset = { type: "dataset", id: "owner/data" } as const;

let standIn: StandInHub;
let hub: Hub;
let notices: string[];
beforeEach(async () => {
  standIn = await startHub([
    {
      name: "datasets/owner/data",
      files: { "README.md": "# Data", "a/x.parquet": large, "a/y y.txt": "small", "z.bin": "" },
    },
    { name: "models/owner/gated", files: { "tokenizer.json": "{}" }, token: "hf_secret" },
  ]);
  notices = [];
  hub = newHub({ token: "hf_secret" });
});
afterEach(() => standIn.close());

function newHub(options: { token?: string; cacheFolder?: string }): Hub {
  return new Hub({
    endpoint: standIn.endpoint,
    cacheFolder: newFolder(),
    onNotice: (message) => notices.push(message),
    retryDelayMs: 1,
    ...options,
  });
}

const fileAt = (snapshot: HubSnapshot, path: string): HubFile => snapshot.files.find((file) => file.path === path)!;

test("lists every page of a repository at one commit", async () => {
  const snapshot = await hub.snapshot(dataset);
  expect(snapshot.commit).toMatch(/^[0-9a-f]{40}$/);
  expect(snapshot.files.map(({ path, sizeBytes }) => [path, sizeBytes])).toEqual([
    ["README.md", 6],
    ["a/x.parquet", 300_000],
    ["a/y y.txt", 5],
    ["z.bin", 0],
  ]);
});

test("downloads small, large and empty files, once", async () => {
  const snapshot = await hub.snapshot(dataset);
  const progress: number[] = [];
  for (const [path, content] of [
    ["a/x.parquet", large],
    ["a/y y.txt", "small"],
    ["z.bin", ""],
  ] as const) {
    const local = await hub.download(snapshot, fileAt(snapshot, path), {
      onProgress: (event) => progress.push(event.receivedBytes),
    });
    expect(readFileSync(local).equals(Buffer.from(content))).toBe(true);
    expect(readdirSync(dirname(local))).toEqual([path.split("/").at(-1)]);
  }
  expect(progress).toContain(300_000);
  const before = standIn.requests.length;
  await hub.download(snapshot, fileAt(snapshot, "a/x.parquet"));
  expect(standIn.requests.length).toBe(before);
});

test("the token goes to the hub and never to where it redirects", async () => {
  const snapshot = await hub.snapshot(dataset);
  await hub.download(snapshot, fileAt(snapshot, "a/x.parquet"));
  await hub.snapshot({ type: "model", id: "owner/gated" });
  expect(standIn.requests.some((request) => request.startsWith("CDN"))).toBe(true);
  expect(standIn.leakedTokens).toEqual([]);
});

describe("a download that breaks off", () => {
  test("goes on within the same call", async () => {
    standIn.faults.cut = { afterBytes: 20_000, times: 7 };
    const snapshot = await hub.snapshot(dataset);
    const local = await hub.download(snapshot, fileAt(snapshot, "a/x.parquet"));
    expect(readFileSync(local).equals(large)).toBe(true);
    // More breaks than tries are allowed in a row: each brought bytes.
    expect(standIn.requests.filter((request) => request.startsWith("CDN"))).toHaveLength(8);
  });

  test("goes on in the next process, without asking for what is there", async () => {
    const snapshot = await hub.snapshot(dataset);
    const file = fileAt(snapshot, "a/x.parquet");
    const folder = join(hub.cacheFolder, "datasets--owner--data", "files", file.hash.hex);
    // What a killed process leaves: half of the file, and a lock with the id of a process that is gone.
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "x.parquet.part"), large.subarray(0, 200_000));
    writeFileSync(join(folder, "x.parquet.lock"), "999999999");
    const local = await hub.download(snapshot, file);
    expect(readFileSync(local).equals(large)).toBe(true);
    expect(standIn.requests.at(-1)).toBe("CDN GET bytes=200000-");
    expect(standIn.sentBytes).toBe(100_000);
    expect(notices).toEqual(["a/x.parquet: going on after 200.0 kB of 300.0 kB."]);
  });

  test("starts over when what was left is damaged, too long, or the server has no ranges", async () => {
    for (const left of [Buffer.alloc(200_000), Buffer.alloc(400_000)]) {
      const fresh = newHub({});
      const snapshot = await fresh.snapshot(dataset);
      const file = fileAt(snapshot, "a/x.parquet");
      const folder = join(fresh.cacheFolder, "datasets--owner--data", "files", file.hash.hex);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "x.parquet.part"), left);
      expect(readFileSync(await fresh.download(snapshot, file)).equals(large)).toBe(true);
    }
    standIn.faults = { noRanges: true, cut: { afterBytes: 20_000, times: 1 } };
    const snapshot = await hub.snapshot(dataset);
    expect(readFileSync(await hub.download(snapshot, fileAt(snapshot, "a/x.parquet"))).equals(large)).toBe(true);
  });

  test("two at once both succeed", async () => {
    const snapshot = await hub.snapshot(dataset);
    const both = await Promise.all([1, 2, 3].map(() => hub.download(snapshot, fileAt(snapshot, "a/x.parquet"))));
    for (const local of both) expect(readFileSync(local).equals(large)).toBe(true);
    expect(readdirSync(dirname(both[0]!))).toEqual(["x.parquet"]);
  });

  test("can be cancelled, and leaves what it has", async () => {
    standIn.faults.stallAfterBytes = 50_000;
    const snapshot = await hub.snapshot(dataset);
    const file = fileAt(snapshot, "a/x.parquet");
    const controller = new AbortController();
    const download = hub.download(snapshot, file, {
      signal: controller.signal,
      onProgress: ({ receivedBytes }) => {
        if (receivedBytes === 50_000) controller.abort();
      },
    });
    await expect(download).rejects.toMatchObject({ name: "AbortError" });
    expect(readFileSync(await hub.download(snapshot, file)).equals(large)).toBe(true);
    expect(standIn.requests.at(-1)).toBe("CDN GET bytes=50000-");
  });
});

describe("what goes wrong has a name", () => {
  test("content that is not what was announced is deleted", async () => {
    standIn.faults.corrupt = true;
    const snapshot = await hub.snapshot(dataset);
    const file = fileAt(snapshot, "a/x.parquet");
    await expect(hub.download(snapshot, file)).rejects.toMatchObject({ code: "hub/corrupt" });
    expect(existsSync(join(hub.cacheFolder, "datasets--owner--data", "files", file.hash.hex, "x.parquet.part"))).toBe(
      false,
    );
  });

  test("no permission, no such repository", async () => {
    const gated = { type: "model", id: "owner/gated" } as const;
    await expect(newHub({ token: "" }).snapshot(gated)).rejects.toMatchObject({
      code: "hub/unauthorized",
      message: expect.stringContaining("HF_TOKEN is not set"),
    });
    await expect(hub.snapshot({ type: "model", id: "no/such" })).rejects.toMatchObject({ code: "hub/not-found" });
    await expect(hub.snapshot({ ...dataset, revision: "v9" })).rejects.toMatchObject({
      code: "hub/not-found",
      message: expect.stringContaining('"v9"'),
    });
  });

  test("a busy hub is asked again; one that stays busy is unreachable", async () => {
    standIn.faults.unavailable = 3;
    expect((await hub.snapshot(dataset)).files).toHaveLength(4);
    standIn.faults.unavailable = 1000;
    await expect(newHub({}).snapshot(dataset)).rejects.toMatchObject({
      code: "hub/unreachable",
      message: expect.stringContaining("HTTP 503 (busy)"),
    });
  });

  test("without a network the files that are there are used", async () => {
    const { cacheFolder } = hub;
    const snapshot = await hub.snapshot(dataset);
    await hub.download(snapshot, fileAt(snapshot, "README.md"));
    await standIn.close();
    const later = newHub({ cacheFolder });
    const offline = await later.snapshot(dataset);
    expect(offline).toEqual(snapshot);
    expect(notices.join()).toContain("using the files of owner/data that were downloaded before");
    expect(readFileSync(await later.download(offline, fileAt(offline, "README.md")), "utf8")).toBe("# Data");
    await expect(later.download(offline, fileAt(offline, "a/x.parquet"))).rejects.toMatchObject({
      code: "hub/unreachable",
    });
    await expect(newHub({}).snapshot(dataset)).rejects.toMatchObject({
      code: "hub/unreachable",
      message: expect.stringContaining("ECONNREFUSED"),
    });
  });

  test("a cache that is a file", async () => {
    const cacheFolder = join(newFolder(), "file");
    writeFileSync(cacheFolder, "");
    const broken = newHub({ cacheFolder });
    await expect(broken.snapshot(dataset)).rejects.toMatchObject({ code: "hub/cache" });
  });
});

test("names of repositories are told from paths", () => {
  expect(isHubId("Qwen/Qwen3-4B-Instruct-2507")).toBe(true);
  for (const path of ["/tmp/x", "./a/b", "../a", "a/../b", "a", "a/b/c", "a/b c"])
    expect(isHubId(path), path).toBe(false);
});
