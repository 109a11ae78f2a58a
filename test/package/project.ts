// An empty project of a stranger with the packed package in it, and the Node versions to run it on.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { addPackages, freshClone, root, run } from "./clone.ts";

/** `npm run release:check` sets it: every Node version, real downloads. */
export const wholeRelease = process.env["WHET_RELEASE"] === "1";

/** Packs a copy of the checkout, so that nothing is built beside the tests that run; the tarball's path. */
export async function packInto(folder: string): Promise<string> {
  const clone = freshClone(join(folder, "clone"));
  addPackages(clone);
  const { code, stderr } = await run(["npm", "pack", "--pack-destination", folder], { cwd: clone });
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"));
  if (code !== 0 || tarball === undefined) throw new Error(`npm pack ended with ${code}: ${stderr}`);
  if (existsSync(join(clone, "dist"))) throw new Error("npm pack left dist/ in the checkout");
  return join(folder, tarball);
}

/** An ES module project with the package installed by npm. */
export async function projectWith(tarball: string, folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "stranger", private: true, type: "module" }));
  const install = ["npm", "install", "--prefer-offline", "--no-audit", "--no-fund", tarball];
  const { code, stderr } = await run(install, { cwd: folder });
  if (code !== 0) throw new Error(`npm install ended with ${code}: ${stderr}`);
  return folder;
}

/** Puts ONNX Runtime into the project, as `npm install onnxruntime-node` does. */
export function addEngine(project: string): void {
  for (const name of ["onnxruntime-node", "onnxruntime-common"])
    symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name));
}

/** The files of a project, from test/package/consumer/ and examples/. */
export function copyPrograms(project: string): void {
  for (const folder of ["test/package/consumer", "examples"])
    for (const name of readdirSync(join(root, folder))) copyFileSync(join(root, folder, name), join(project, name));
}

export interface NodeVersion {
  label: string;
  /** The executable. */
  node: string;
}

/** The Node that runs this; for a release, the newest of each supported line besides, from npm's `node` package. */
export function nodeVersions(): NodeVersion[] {
  if (!wholeRelease) return [{ label: process.version, node: process.execPath }];
  return ["20", "22", "24", "latest"].map((line) => {
    const node = nodeOf(line);
    return { label: execFileSync(node, ["--version"], { encoding: "utf8" }).trim(), node };
  });
}

/** The newest Node of a line, fetched again when there is a newer one. */
export function nodeOf(line: string): string {
  const npm = (args: string[], cwd = root) =>
    execFileSync("npm", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const versions = JSON.parse(npm(["view", `node@${line}`, "version", "--json"])) as string | string[];
  const newest = [versions]
    .flat()
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
    .at(-1)!;
  const folder = join(root, "node_modules/.cache/whetstone/nodes", newest);
  const node = join(folder, "node_modules/node/bin/node");
  if (!existsSync(node)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), '{ "private": true, "allowScripts": { "node": true } }');
    npm(["install", "--no-audit", "--no-fund", `node@${newest}`], folder);
  }
  return node;
}

/** The environment of a command that finds this Node first, and none of the settings of whoever runs the tests. */
export function environmentOf(node: string, env: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { PATH = "", HOME = "", LANG = "C.UTF-8" } = process.env;
  return { PATH: `${dirname(node)}:${PATH}`, HOME, LANG, ...env };
}

export const readJson = (path: string) => JSON.parse(readFileSync(path, "utf8"));
