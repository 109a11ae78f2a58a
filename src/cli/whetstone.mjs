#!/usr/bin/env node
// Where the command starts, in a checkout and in the package. Plain JavaScript that any Node can read, so that one that is too old
// is told so; then the source or what was built from it.
import { existsSync } from "node:fs";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`whetstone: Node ${process.version} is too old. Install Node.js 20.19 or newer, then run this again.`);
  process.exitCode = 1;
} else if (existsSync(new URL("./main.js", import.meta.url))) {
  void import("./main.js");
} else {
  void import("../core/ts-loader.mjs").then(() => import("./main.ts"));
}
