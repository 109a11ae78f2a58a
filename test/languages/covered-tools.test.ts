// Tools below /tmp, where the jail has a folder of its own: Node is shown elsewhere; of what cannot be, an error says so, and no program is blamed.
import { execFile } from "node:child_process";
import { chmodSync, copyFileSync, linkSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { temporaryFolders } from "../support/folders.ts";

const newFolder = temporaryFolders("/tmp");
const here = dirname(fileURLToPath(import.meta.url));
const loader = join(here, "../../src/core/ts-loader.mjs");

function nodeIn(folder: string): string {
  const node = join(folder, "node");
  try {
    linkSync(process.execPath, node);
  } catch {
    copyFileSync(process.execPath, node);
  }
  return node;
}

/** As much of Go as is asked before a program is compiled. */
function goIn(folder: string): void {
  const tools = join(folder, "tool");
  mkdirSync(tools);
  for (const name of ["compile", "link"]) writeFileSync(join(tools, name), "");
  writeFileSync(join(folder, "go"), `#!/bin/sh\nif [ "$1" = env ]; then printf 'go1.99\\n${tools}\\n'; fi\n`);
  chmodSync(join(folder, "go"), 0o755);
}

async function endsAt(level: string) {
  const folder = newFolder();
  chmodSync(folder, 0o755);
  goIn(folder);
  const { stdout } = await promisify(execFile)(
    nodeIn(folder),
    ["--import", loader, join(here, "below-tmp.ts"), level],
    {
      env: { ...process.env, PATH: `${folder}:${process.env["PATH"]}`, WHETSTONE_CACHE: join(folder, "cache") },
      timeout: 120_000,
    },
  );
  return { folder, ends: JSON.parse(stdout) as Record<string, unknown> };
}

test("at the first level Node works, and Go is told to be elsewhere", { timeout: 180_000 }, async () => {
  const { folder, ends } = await endsAt("jail");
  expect(ends).toEqual({
    javascript: { status: "finished", printed: "42\n" },
    go: {
      code: "sandbox/covered-tools",
      message: `Programs cannot see ${folder}/tool/compile, which they need: the jail has a /tmp of its own. Install it elsewhere, such as below /opt, and put that on PATH.`,
    },
  });
});

test("at the second level paths stay, and Node works", { timeout: 180_000 }, async () => {
  const { ends } = await endsAt("landlock");
  expect(ends["javascript"]).toEqual({ status: "finished", printed: "42\n" });
});
