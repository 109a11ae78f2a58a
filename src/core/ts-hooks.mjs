// Module hooks for a Node that cannot run TypeScript: a .ts file is turned into JavaScript with esbuild when it is imported. Results
// are cached by content, so a second start reads files and compiles nothing.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withoutTypes } from "./esbuild.mjs";

export { resolve } from "./own-entries.mjs";

/** The second one is for a checkout that cannot be written to. */
const cacheFolders = [
  fileURLToPath(new URL("../../node_modules/.cache/whetstone/ts", import.meta.url)),
  join(process.env.WHETSTONE_CACHE || join(homedir(), ".cache", "whetstone"), "ts"),
];

export async function load(url, context, nextLoad) {
  if (!url.startsWith("file:") || !new URL(url).pathname.endsWith(".ts")) return nextLoad(url, context);
  const path = fileURLToPath(url);
  const source = readFileSync(path, "utf8");
  const name = `${createHash("sha1").update(path).update("\0").update(source).digest("hex")}.mjs`;
  return { format: "module", source: cached(name) ?? compile(path, source, name), shortCircuit: true };
}

function cached(name) {
  for (const folder of cacheFolders) {
    try {
      return readFileSync(join(folder, name), "utf8");
    } catch {
      // Not there.
    }
  }
  return undefined;
}

function compile(path, source, name) {
  const code = withoutTypes(path, source);
  for (const folder of cacheFolders) {
    try {
      mkdirSync(folder, { recursive: true });
      const temporary = join(folder, `${name}.${process.pid}`);
      writeFileSync(temporary, code);
      renameSync(temporary, join(folder, name));
      break;
    } catch {
      // Without any folder to write to it works too, only slower.
    }
  }
  return code;
}
