// Module hooks for modules of users: the package's own entries ("whetstone/rl") are this very copy of it, wherever the module lies, and
// a Node that cannot run TypeScript gets it without its types. Lines stay where they are, so that messages name the right one.
import { readFileSync } from "node:fs";
import module from "node:module"; // a default import: Node 20 has no registerHooks to name
import { fileURLToPath } from "node:url";
import { transform } from "sucrase";

let own = {};

/** `entries`: where each entry of the package is in this installation. Older Nodes run hooks in a thread of their own. */
export function register(entries) {
  initialize(entries);
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
  if (process.features.typescript || !/^file:.*\.m?ts$/.test(url)) return nextLoad(url, context);
  return { format: "module", source: withoutTypes(fileURLToPath(url)), shortCircuit: true };
}

function withoutTypes(path) {
  const options = { transforms: ["typescript"], disableESTransforms: true, keepUnusedImports: true };
  try {
    return transform(readFileSync(path, "utf8"), options).code;
  } catch (error) {
    if (!error.loc) throw error;
    const { line, column } = error.loc;
    const what = error.message.replace(/^Error transforming [^:]*: | \(\d+:\d+\)$/g, "");
    throw new SyntaxError(`${path}:${line}:${column}: ${what}`);
  }
}
