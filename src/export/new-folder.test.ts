// A folder appears whole or not at all.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolders } from "../../test/support/folders.ts";
import { writeFolder } from "./new-folder.ts";

const newFolder = temporaryFolders();
const fill = (text: string) => async (folder: string) => writeFileSync(join(folder, "file"), text);

test("it is made with the folders above it, or put into an empty one, and is whole when it is there", async () => {
  const parent = newFolder();
  const out = join(parent, "a", "b", "out");
  await writeFolder(out, 10, async (folder) => {
    await fill("1")(folder);
    expect(existsSync(out)).toBe(false);
  });
  expect(readFileSync(join(out, "file"), "utf8")).toBe("1");
  expect(readdirSync(join(parent, "a", "b"))).toEqual(["out"]);
  mkdirSync(join(parent, "empty"));
  await writeFolder(join(parent, "empty"), 10, fill("2"));
  expect(readdirSync(join(parent, "empty"))).toEqual(["file"]);
});

test("what is there already stays as it is", async () => {
  const out = newFolder();
  await fill("mine")(out);
  await expect(writeFolder(out, 10, fill("theirs"))).rejects.toMatchObject({ code: "export/exists" });
  await expect(writeFolder(join(out, "file"), 10, fill("theirs"))).rejects.toMatchObject({ code: "export/exists" });
  expect(readFileSync(join(out, "file"), "utf8")).toBe("mine");
  // Also when it appears while the folder is being filled.
  const late = join(newFolder(), "late");
  const writing = writeFolder(late, 10, async (folder) => {
    await fill("theirs")(folder);
    mkdirSync(late);
    await fill("mine")(late);
  });
  await expect(writing).rejects.toMatchObject({ code: "export/not-writable" });
  expect(readFileSync(join(late, "file"), "utf8")).toBe("mine");
});

test("a failure, an interrupt and too little space leave nothing; what a killed process left is cleared away", async () => {
  const parent = newFolder();
  const out = join(parent, "out");
  // No process has this id; this one is alive; and names that only begin alike are other people's.
  for (const name of [".out.4194399.part", `.out.${process.ppid}.part`, ".out.more.4194399.part"])
    mkdirSync(join(parent, name));
  const interrupted = new AbortController();
  const writing = writeFolder(out, 10, async (folder) => {
    await fill("half")(folder);
    interrupted.abort(new Error("interrupted"));
    interrupted.signal.throwIfAborted();
  });
  await expect(writing).rejects.toThrow("interrupted");
  expect(readdirSync(parent).sort()).toEqual([`.out.${process.ppid}.part`, ".out.more.4194399.part"].sort());
  await expect(writeFolder(out, 1e18, fill("x"))).rejects.toThrow(/needs 1000000000.0 GB, and [\d.]+ GB are free/);
  const full = Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
  await expect(writeFolder(out, 10, () => Promise.reject(full))).rejects.toMatchObject({ code: "export/disk-full" });
  expect(existsSync(out)).toBe(false);
});
