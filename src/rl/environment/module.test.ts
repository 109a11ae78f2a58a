// Modules that env= names, each loaded by a Node of its own as the command does it: what is wrong in one is said with its file, its line
// and what to do.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { temporaryFolders } from "../../../test/support/folders.ts";
import { typescriptFlags } from "../../core/workers.ts";

const folder = temporaryFolders();
const importing = 'import { environment } from "whetstone/rl";\n';
const files: Record<string, string> = {
  "good.ts": `${importing}import { least } from "./part.ts";
const problems = [{ id: "a", prompt: "x", least }] satisfies { id: string; prompt: string; least: number }[];
export default environment({ problems, reward: ({ problem, text }) => Number(text.length > problem.least) });`,
  "part.ts": "export enum Kind { One = 3 }\nexport const least: number = Kind.One;\n",
  "good.js": `${importing}export default environment({ problems: [{ id: "a", prompt: "x" }], reward: () => 1 });`,
  "node_modules/@me/asked/package.json":
    '{ "name": "@me/asked", "type": "module", "exports": { "import": "./main.js" } }',
  "node_modules/@me/asked/main.js": `${importing}export default environment({ problems: () => [{ id: "b", prompt: "x" }], reward: () => 1 });`,
  "syntax.ts": "const a: number = 3;\nlet b = = 2;\n",
  "syntax.js": "const a = 3;\nlet b = = 2;\n",
  "throws.ts": "interface X { y?: { z: number } }\nconst x: X = {};\n\nx.y!.z;\nexport {};\n",
  "imports.ts": `import { nothing } from "./part.ts";\nexport default nothing;\n`,
  "missing.ts": `import "./gone.ts";\n`,
  "unnamed.ts": "export const environment = 3;\n",
  "plain.ts": "export default { problems: [], reward: () => 1 };\n",
  "key.ts": `${importing}export default environment({ problem: [] } as never);\n`,
  "problem.ts": `${importing}export default environment({ problems: [{ id: 1, prompt: "x" }], reward: () => 1 } as never);\n`,
  "problems.ts": `${importing}export default environment({\n  problems: () => {\n    throw new Error("no disk");\n  },\n  reward: () => 1,\n});\n`,
  "promise.ts": `${importing}export default Promise.resolve(environment({ problems: [{ id: "a", prompt: "x" }], reward: () => 1 }));\n`,
  "tools.ts": `${importing}export default environment({ problems: [{ id: "a", prompt: "x" }], tools: "search" as never, reward: () => 1 });\n`,
  "schema.ts": `${importing}export default environment({ problems: [{ id: "a", prompt: "x" }], tools: { t: { inputSchema: { type: "string" } } }, reward: () => 1 });\n`,
};

let place: string;
let outcomes: Record<string, { problems?: string[]; fingerprint?: string; code?: string; message?: string }>;

const load = (names: readonly string[]): typeof outcomes => {
  const module = fileURLToPath(new URL("./module.ts", import.meta.url));
  const script = `const { loadEnvironment } = await import(${JSON.stringify(module)});
    const outcomes = {};
    for (const name of ${JSON.stringify(names)})
      outcomes[name] = await loadEnvironment(name, () => {}).then(
        ({ problems, fingerprint }) => ({ problems: problems.map(({ id }) => id), fingerprint }),
        ({ code, message }) => ({ code, message }),
      );
    console.log(JSON.stringify(outcomes));`;
  const args = [...typescriptFlags, "--input-type=module", "--eval", script];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: place, encoding: "utf8" })) as typeof outcomes;
};

beforeAll(() => {
  place = folder();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(place, name)), { recursive: true });
    writeFileSync(join(place, name), text);
  }
  const modules = Object.keys(files).filter((name) => !name.startsWith("node_modules"));
  outcomes = load([...modules.map((name) => `./${name}`), "@me/asked", "./gone.ts", "no-such-package"]);
});

test("TypeScript, JavaScript and packages that are installed where the command was typed", () => {
  expect(outcomes["./good.ts"]!.problems).toEqual(["a"]);
  expect(outcomes["./good.js"]!.problems).toEqual(["a"]);
  expect(outcomes["@me/asked"]!.problems).toEqual(["b"]);
});

test.each([
  [
    "./syntax.ts",
    "environment-module",
    /syntax\.ts:2:9: Unexpected "="\. Mend it; nothing was asked of a model yet\.$/,
  ],
  ["./syntax.js", "environment-module", /Unexpected token '=' \(.*syntax\.js:2\)\. Mend it/],
  ["./throws.ts", "environment-module", /\(reading 'z'\) \(.*throws\.ts:4:\d+\)\. Mend it/],
  ["./imports.ts", "environment-module", /named 'nothing' \(.*imports\.ts:1\)/],
  ["./missing.ts", "environment-module", /gone\.ts' imported from .*missing\.ts\. Mend it/],
  [
    "./unnamed.ts",
    "environment-module",
    /unnamed\.ts has no default export \(it exports environment\)\. End the module/,
  ],
  [
    "./plain.ts",
    "environment-module",
    /The default export of .*plain\.ts is an object and no environment\. End the module/,
  ],
  [
    "./key.ts",
    "environment-module",
    /environment\(\{ problem \}\) is not known\. Known are problems, .* \(.*key\.ts:2:\d+\)/,
  ],
  ["./problem.ts", "problem-ids", /problem\.ts: problems\[0\]\.id is 1 \(number\)\. Give every problem an id/],
  [
    "./problems.ts",
    "no-problems",
    /problems\.ts: .*problems\(\) failed: no disk \(.*problems\.ts:4:\d+\)\. Nothing was asked/,
  ],
  ["./schema.ts", "bad-tool", /schema\.ts: The schema of the tool "t" cannot be read: its type is "string"/],
  ["./promise.ts", "environment-module", /The default export of .*promise\.ts is a promise\. Await it there/],
  [
    "./tools.ts",
    "environment-module",
    /environment\(\{ tools \}\) is "search"\. Give tools by their names, .* \(.*tools\.ts:2:\d+\)/,
  ],
  ["./gone.ts", "environment-module", /there is no file .*gone\.ts\. .* init --env writes an example/],
  [
    "no-such-package",
    "environment-module",
    /neither a file nor an npm package .* npm install no-such-package; .* repair, python/,
  ],
])("%s", (name, code, message) => {
  expect(outcomes[name]!.message).toMatch(message);
  expect(outcomes[name]!.code).toMatch(new RegExp(`/${code}$`));
});

test("a module that ends the process does not end it as if all were well", () => {
  writeFileSync(join(place, "ends.ts"), "process.exit(0);\n");
  expect(() => load(["./ends.ts"])).toThrow(
    /ends\.ts ended the process while it was loaded \(process\.exit\): leave that out/,
  );
});

test("a module that says something else has another fingerprint, and so has one that it imports", () => {
  const before = outcomes["./good.ts"]!.fingerprint;
  expect(load(["./good.ts"])["./good.ts"]!.fingerprint).toBe(before);
  writeFileSync(join(place, "part.ts"), "export const least: number = 4;\n");
  expect(load(["./good.ts"])["./good.ts"]!.fingerprint).not.toBe(before);
});
