#!/usr/bin/env node
// Where the command starts, in a checkout and in the package. Plain JavaScript that any Node can read, so that one that is too old
// is told so; then the source or what was built from it.
import { existsSync } from "node:fs";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`whetstone: Node ${process.version} is too old. Install Node.js 20.19 or newer, then run this again.`);
  process.exitCode = 1;
} else {
  void start();
}

async function start() {
  const built = existsSync(new URL("./main.js", import.meta.url));
  const { runCommandLine } = await import(built ? "./main.js" : await source());
  process.exitCode = await runCommandLine(process.argv.slice(2));
}

/** Node runs the source itself where it can; commands of the checkout stand outside src/, and are never prepared. */
async function source() {
  const asItIs = process.features.typescript || ["bench", "test"].includes(process.argv[2]);
  const main = asItIs ? undefined : await import("../core/prepared.mjs").then(({ prepare }) => prepare());
  if (main === undefined) await import("../core/ts-loader.mjs");
  return main ?? "./main.ts";
}
