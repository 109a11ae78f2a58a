// Module hooks for modules of users: the package's own entries ("whetstone/rl") are this very copy of it, wherever the module lies, and
// TypeScript is what esbuild makes of it, on every Node alike.
import { readFileSync } from "node:fs";
import module from "node:module"; // a default import: Node 20 has no registerHooks to name
import { fileURLToPath } from "node:url";
import { withoutTypes } from "./esbuild.mjs";

const ownFolder = new URL("../", import.meta.url).href;
let own = {};

/** `entries`: where each entry of the package is in this installation. Older Nodes run hooks in a thread of their own. */
export function register(entries) {
  initialize(entries);
  process.setSourceMapsEnabled(true);
  if (module.registerHooks) module.registerHooks({ resolve, load });
  else module.register(import.meta.url, { data: entries });
}

export function initialize(entries) {
  own = entries;
}

export function resolve(specifier, context, nextResolve) {
  return nextResolve(own[specifier] ?? specifier, context);
}

export function load(url, context, nextLoad) {
  if (!/^file:.*\.m?ts$/.test(url) || url.startsWith(ownFolder)) return nextLoad(url, context);
  const path = fileURLToPath(url);
  return { format: "module", source: withoutTypes(path, readFileSync(path, "utf8")), shortCircuit: true };
}
