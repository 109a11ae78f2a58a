// `./whet engines` on installations of every state: none, a part of one, a whole one, and one in use.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { foldersInMemory } from "../../../test/support/folders.ts";
import { runWhet } from "../../../test/support/whet.ts";
import { skyrlVersion } from "../engines/skyrl/install.ts";

const newFolder = foldersInMemory();
const cache = newFolder();
const folder = join(cache, "engines", `skyrl-${skyrlVersion}`);
const whet = (...args: string[]) => runWhet(["engines", ...args], { env: { WHETSTONE_CACHE: cache } });
const skyrl = async () => (await whet()).stdout.split("\n").find((line) => line.startsWith("skyrl"));

test("what is installed is listed with its disk, and goes whole; not while it is used", async () => {
  expect(await skyrl()).toMatch(/^skyrl +no +\S/);
  expect((await whet("remove=skyrl")).stdout).toBe("skyrl is not installed\n");

  mkdirSync(join(folder, "downloads"), { recursive: true });
  writeFileSync(join(folder, "downloads", "wheel"), Buffer.alloc(3 << 20));
  expect(await skyrl()).toMatch(/^skyrl +SkyRL [\d.]+, in part +\d MiB /);

  mkdirSync(join(folder, "env", "bin"), { recursive: true });
  mkdirSync(`${folder}-compiled`);
  symlinkSync(process.execPath, join(folder, "env", "bin", "python"));
  writeFileSync(join(folder, "complete"), "");
  expect(await skyrl()).toMatch(/^skyrl +SkyRL [\d.]+ +\d MiB /);

  const sleep = join(folder, "env", "bin", "sleep");
  copyFileSync("/bin/sleep", sleep);
  const user = spawn(sleep, ["60"]);
  await once(user, "spawn");
  const refused = await whet("remove=skyrl");
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`in use by process ${user.pid}`)]);
  user.kill();
  await once(user, "exit");

  expect((await whet("remove=skyrl")).stdout).toMatch(/^skyrl is removed: \d MiB of /);
  expect([folder, `${folder}-compiled`].map((path) => existsSync(path))).toEqual([false, false]);
});

test("an engine that there is not, and one that cannot go, are refused with those that can", async () => {
  const { code, stderr } = await whet("remove=vllm");
  expect([code, stderr]).toEqual([2, expect.stringMatching(/remove=vllm is no engine\. There are: embedded, skyrl/)]);
});
