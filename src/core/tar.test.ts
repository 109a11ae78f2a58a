// The archives of GNU tar and Python are read; what a hostile one tries is refused, and nothing of it is written outside the folder.
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createReadStream, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { temporaryFolders } from "../../test/support/folders.ts";
import { tarOf } from "../server/archive.ts";
import { ArchiveError, extractTar, readTar } from "./tar.ts";

const newFolder = temporaryFolders();
const limits = { maxBytes: 1 << 20 };

/** An archive written by Python's tarfile. Each entry: name, content, and more of its header. */
function pythonTar(
  entries: readonly [name: string, content: string, more?: Record<string, string>][],
  mode = "w",
): Buffer {
  const path = join(newFolder(), "archive");
  const script = `
import io, json, sys, tarfile
with tarfile.open(sys.argv[1], sys.argv[2]) as tar:
    for name, content, *more in json.loads(sys.argv[3]):
        info = tarfile.TarInfo(name)
        info.size = len(content.encode())
        for key, value in (more[0] if more else {}).items():
            setattr(info, key, value.encode() if key == "type" else value)
        tar.addfile(info, io.BytesIO(content.encode()))
`;
  execFileSync("python3", ["-c", script, path, mode, JSON.stringify(entries)]);
  return readFileSync(path);
}

async function* pieces(bytes: Uint8Array, size = 700): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collected(parts: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(part);
  return all;
}

async function list(bytes: Uint8Array, most = limits): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const entry of readTar(pieces(bytes), most)) {
    const parts: Buffer[] = [];
    for await (const part of entry.content()) parts.push(part);
    found[entry.path] = Buffer.concat(parts).toString();
  }
  return found;
}

test("an archive of many pieces is unpacked without piling up listeners", async () => {
  const warnings: Error[] = [];
  const listen = (warning: Error) => warnings.push(warning);
  process.on("warning", listen);
  try {
    const text = randomBytes(1 << 19).toString("hex"); // does not pack away: some 800 pieces
    const from = newFolder();
    writeFileSync(join(from, "large.txt"), text);
    const packed = gzipSync(Buffer.concat(await collected(tarOf(from))));
    expect(packed.length / 700).toBeGreaterThan(500);
    expect(await list(packed, { maxBytes: 1 << 21 })).toEqual({ "large.txt": text });
    await setImmediate(); // warnings come a turn later
    expect(warnings).toEqual([]);
  } finally {
    process.off("warning", listen);
  }
});

test.each([
  ["plain", false],
  ["gzip", true],
] as const)("%s: what the source throws comes through", async (_, zipped) => {
  const tar = pythonTar([["one", "x".repeat(3000)]]);
  const packed = zipped ? gzipSync(tar) : tar;
  async function* breaking() {
    yield* pieces(packed.subarray(0, packed.length - 20), 30);
    throw new TypeError("the line broke");
  }
  await expect(extractTar(breaking(), newFolder(), limits)).rejects.toThrow(new TypeError("the line broke"));
});

test("long names, folders, gzip and files that nobody reads", async () => {
  const long = `${"a".repeat(90)}/${"b".repeat(90)}/${"c".repeat(90)}.txt`;
  const packed = pythonTar(
    [
      ["./one.txt", "1"],
      ["folder", "", { type: "5" }],
      [long, "x".repeat(3000)],
    ],
    "w:gz",
  );
  expect(await list(packed)).toEqual({ "one.txt": "1", [long]: "x".repeat(3000) });

  const folder = newFolder();
  mkdirSync(join(folder, "in", "deep"), { recursive: true });
  writeFileSync(join(folder, "in", "deep", "file"), "z".repeat(1500));
  writeFileSync(join(folder, "in", "other"), "o");
  execFileSync("tar", ["-cf", join(folder, "gnu.tar"), "-C", join(folder, "in"), "."]);
  const names: string[] = [];
  for await (const { path } of readTar(createReadStream(join(folder, "gnu.tar")), limits)) names.push(path);
  expect(names.sort()).toEqual(["deep/file", "other"]);
});

test("our own server's archives come out as they went in, whatever the sizes", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(2000), { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 900 }),
      async (sizes, chunk) => {
        const [from, to] = [newFolder(), newFolder()];
        for (const [index, size] of sizes.entries())
          writeFileSync(join(from, `f${index}`), Buffer.alloc(size, index + 1));
        const parts: Uint8Array[] = [];
        for await (const part of tarOf(from)) parts.push(part);
        await extractTar(pieces(Buffer.concat(parts), chunk), to, limits);
        for (const name of readdirSync(from))
          expect(readFileSync(join(to, name))).toEqual(readFileSync(join(from, name)));
        expect(readdirSync(to).length).toBe(sizes.length);
      },
    ),
    { numRuns: 15 },
  );
});

test.each([
  [
    "a path that climbs",
    [
      ["good", "1"],
      ["../evil", "x"],
    ],
  ],
  ["one that climbs later", [["a/../../evil", "x"]]],
  ["an absolute path", [["/tmp/evil", "x"]]],
  ["a backslash", [["..\\evil", "x"]]],
  ["a symbolic link", [["link", "", { type: "2", linkname: "/etc/passwd" }]]],
  ["a hard link", [["link", "", { type: "1", linkname: "good" }]]],
  ["a device", [["device", "", { type: "3" }]]],
  ["a pipe", [["pipe", "", { type: "6" }]]],
  [
    "the same file twice",
    [
      ["twice", "1"],
      ["./twice", "2"],
    ],
  ],
  ["more than is allowed", [["big", "x".repeat(5000)]]],
] as [string, [string, string, Record<string, string>?][]][])("%s is refused", async (_, entries) => {
  const folder = join(newFolder(), "deep", "inside");
  mkdirSync(folder, { recursive: true });
  const outcome = extractTar(pieces(pythonTar(entries)), folder, { maxBytes: 4096 });
  await expect(outcome).rejects.toThrow(ArchiveError);
  await expect(outcome).rejects.toMatchObject({ code: "archive/unsafe" });
  expect(readdirSync(join(folder, ".."))).toEqual(["inside"]);
  expect(readdirSync(folder).filter((name) => !["good", "twice"].includes(name))).toEqual([]);
});

test("too many entries, a cut and a changed byte are errors, never a silent part", async () => {
  const bytes = pythonTar(Array.from({ length: 5 }, (_, index) => [`f${index}`, "y".repeat(600)] as [string, string]));
  await expect(list(bytes, { ...limits, maxEntries: 3 } as typeof limits)).rejects.toMatchObject({
    code: "archive/unsafe",
  });
  await expect(list(bytes.subarray(0, 1500))).rejects.toMatchObject({ code: "archive/damaged" });
  const changed = Buffer.from(bytes);
  changed[130]! ^= 1;
  await expect(list(changed)).rejects.toMatchObject({ code: "archive/damaged" });
  const packed = pythonTar([["f", "y".repeat(9000)]], "w:gz");
  await expect(list(packed.subarray(0, packed.length - 20))).rejects.toMatchObject({ code: "archive/damaged" });
});
