import { realpathSync } from "node:fs";
import { type MakeCall, reportFile } from "./call.ts";
import { type Language, megabyte, type Runtime, shown, type Tools } from "./language.ts";

/** Contest programs recurse deeply; the engine has to be told how much of the stack it may use. */
const stackBytes = 256 * megabyte;

/** Node that runs this process, started with a program's file. */
export function nodeTools(fileName: string): Tools {
  const node = shown(realpathSync(process.execPath));
  return {
    version: `Node ${process.versions.node}`,
    files: [node],
    command: ({ memoryBytes, call, at }) => [
      at(node),
      `--max-old-space-size=${Math.max(16, Math.floor(memoryBytes / megabyte))}`,
      `--stack-size=${Math.floor(stackBytes / 1024) - 4096}`,
      ...(call ? ["call.cjs", fileName] : [fileName]),
    ],
    addressBytes: 16 * 1024 * megabyte,
    stackBytes,
  };
}

/**
 * One call: {"function": …, "arguments": [JSON texts]} on descriptor 0, the value as a tagged tree on descriptor 3 (sandbox/frame.md) or in a file. The program is
 * a script in the same realm, so a function at its top level can be found by its name; one with import or export is a module, and gives what it
 * exports. What it does to this realm harms only itself: what is written is read as a value.
 */
const harness = String.raw`"use strict";
const fs = require("node:fs");
const vm = require("node:vm");
const path = require("node:path");
const { createRequire } = require("node:module");
const { pathToFileURL } = require("node:url");
const { writeSync, readFileSync } = fs;
const { isArray } = Array;
const { stringify, parse } = JSON;
const { is, keys } = Object;
const exit = process.reallyExit.bind(process);
const text = String;
function say(message) {
  const bytes = Buffer.from(message);
  const to = REPORT;
  for (let at = 0; at < bytes.length; ) at += writeSync(to, bytes, at);
}
function end(word, error) {
  if (error !== undefined) try { writeSync(2, text(error && error.stack || error) + "\n"); } catch {}
  say("S" + word);
  exit(1);
}
function number(value) {
  if (Number.isInteger(value)) return '["i","' + (is(value, -0) ? "0" : BigInt(value)) + '"]';
  return '["f","' + (value !== value ? "nan" : value === Infinity ? "inf" : value === -Infinity ? "-inf" : text(value)) + '"]';
}
function tree(value, depth) {
  if (depth > 200) throw new Error("too deep");
  if (value === null || value === undefined) return '["n"]';
  switch (typeof value) {
    case "boolean": return '["b",' + value + "]";
    case "number": return number(value);
    case "bigint": return '["i","' + value + '"]';
    case "string": return '["s",' + stringify(value) + "]";
    case "object": break;
    default: throw new Error("a " + typeof value);
  }
  if (isArray(value) || ArrayBuffer.isView(value)) {
    const items = [];
    for (let index = 0; index < value.length; index++) items.push(tree(value[index], depth + 1));
    return '["l",[' + items.join(",") + "]]";
  }
  const pairs = [];
  if (value instanceof Map) for (const [key, item] of value) pairs.push("[" + tree(key, depth + 1) + "," + tree(item, depth + 1) + "]");
  else if (value instanceof Set || value instanceof Promise) throw new Error("no value of JSON");
  else for (const key of keys(value)) pairs.push('[["s",' + stringify(key) + "]," + tree(value[key], depth + 1) + "]");
  return '["d",[' + pairs.join(",") + "]]";
}
const file = path.resolve(process.argv[2] ?? "program.js");
const source = readFileSync(file, "utf8");
let request;
try {
  request = parse(readFileSync(0, "utf8"));
  request.arguments = request.arguments.map((one) => parse(one));
} catch { end("bad-arguments"); }
const name = request.function;
const methodOf = (Solution) => {
  if (typeof Solution !== "function" || typeof Solution.prototype?.[name] !== "function") return undefined;
  const solution = new Solution();
  return (...all) => solution[name](...all);
};
(async () => {
  let found;
  let script;
  try { script = new vm.Script(source, { filename: file, importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER }); } catch (error) {
    if (!/import statement|'import.meta'|Unexpected token 'export'|await is only valid/.test(text(error))) end("compile-error", error);
  }
  if (script) {
    const module = { exports: {} };
    Object.assign(globalThis, { require: createRequire(file), module, exports: module.exports, __filename: file, __dirname: path.dirname(file) });
    script.runInThisContext();
    const own = (of) => { try { return vm.runInThisContext("typeof " + of + " === 'undefined' ? undefined : " + of); } catch { return undefined; } };
    found = own(name) ?? module.exports?.[name] ?? (typeof module.exports === "function" ? module.exports : undefined);
    if (typeof found !== "function") found = methodOf(own("Solution") ?? module.exports?.Solution) ?? found;
  } else {
    const exported = await import(pathToFileURL(file).href);
    found = exported[name] ?? exported.default?.[name] ?? exported.default;
    if (typeof exported[name] !== "function") found = methodOf(exported.Solution ?? exported.default) ?? found;
  }
  if (typeof found !== "function") end("target-not-found");
  const value = await found(...request.arguments);
  let frame;
  try { frame = tree(value, 0); } catch (error) { end("unserialisable", error); }
  say("V" + frame);
  exit(0);
})().catch((error) => end(/^SyntaxError/.test(text(error && error.name)) && !error.stack.includes(request.function) ? "compile-error" : "runtime-error", error));
`;

/** The harness beside the program; where only one file is run, that one starts it. */
const call: MakeCall = (source, _calls, report) => {
  const beside = {
    "call.cjs": harness.replace("REPORT", report === "file" ? `fs.openSync("${reportFile}", "w")` : "3"),
  };
  if (report === "descriptor") return { source, beside };
  return { source: 'require("./call.cjs");', beside: { ...beside, "program.js": source } };
};

export const nodeRuntime = {
  install: "it is the Node that runs Whetstone",
  call,
  signs: {
    memory: /JavaScript heap out of memory|Array buffer allocation failed|ERR_WORKER_OUT_OF_MEMORY/,
    compile:
      /^SyntaxError: [\s\S]*?\n {4}at (?:wrapSafe|compileSourceTextModule|internalCompileFunction|compileFunction)/m,
  },
} satisfies Partial<Runtime>;

export const javascript: Language = {
  title: "JavaScript",
  tags: ["javascript", "js", "node", "nodejs", "mjs", "cjs", "jsx"],
  fusion: "nodejs",
  fileName: "solution.js",
  comment: "//",
  startMs: 750,
  note: "It is run by Node.",
  sum: 'const [a, b] = require("fs").readFileSync(0, "utf8").split(" ").map(BigInt);\nconsole.log(String(a + b));',
  runtime: { ...nodeRuntime, find: async () => nodeTools("solution.js") },
};
