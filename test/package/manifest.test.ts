// package.json, tsconfig.json, the lockfile and the source say the same.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { runtimePackages } from "../../src/cli/engines/embedded/runtime.ts";
import { sourceEntries } from "../../src/core/own-entries.mjs";
import { runtimeVersion } from "../../src/graph/onnx-runtime.ts";

const root = new URL("../../", import.meta.url);
const json = (name: string) => JSON.parse(readFileSync(new URL(name, root), "utf8"));
const manifest = json("package.json");

test("every entry has a source file, types beside its code, and a path for the checkout's own type check", () => {
  const entries = sourceEntries();
  expect(Object.keys(entries).length).toBeGreaterThan(4);
  for (const [name, url] of Object.entries(entries)) {
    expect(existsSync(fileURLToPath(url)), url).toBe(true);
    const { types, default: code } = manifest.exports[name.replace("whetstone", ".")];
    expect(types).toBe(code.replace(/\.js$/, ".d.ts"));
  }
  const paths = Object.entries(json("tsconfig.json").compilerOptions.paths as Record<string, string[]>);
  expect(Object.fromEntries(paths.map(([name, [path]]) => [name, new URL(path!, root).href]))).toEqual(entries);
});

test("versions are exact, and what runs at install time is decided", () => {
  for (const [name, version] of Object.entries({
    ...manifest.dependencies,
    ...manifest.optionalDependencies,
    ...manifest.devDependencies,
  }))
    expect(version, name).toMatch(/^(npm:[^@]+@)?\d+\.\d+\.\d+$/);
  // What strips types for users is what strips them here.
  for (const [name, version] of Object.entries(manifest.optionalDependencies))
    expect(version, name).toBe(manifest.devDependencies.esbuild);
  const lock = json("package-lock.json").packages as Record<string, { hasInstallScript?: boolean; dev?: boolean }>;
  const scripts = Object.entries(lock).filter(([, entry]) => entry.hasInstallScript);
  // None reaches a user of the package, and none of these runs in a checkout.
  expect(scripts.filter(([, entry]) => !entry.dev)).toEqual([]);
  const names = scripts.map(([path]) => path.replace(/^.*node_modules\//, "")).filter((name) => name !== "fsevents");
  expect(new Set(names)).toEqual(new Set(Object.keys(manifest.allowScripts)));
});

test("the pages name the file that `npm pack` writes", () => {
  for (const page of ["README.md", "docs/install.md"]) {
    const named = readFileSync(new URL(page, root), "utf8").match(/whetstone-[\w.-]+\.tgz/g);
    expect(new Set(named), page).toEqual(new Set([`whetstone-${manifest.version}.tgz`]));
  }
});

test("the Dockerfile starts from a supported Node and copies what the command needs", () => {
  const text = readFileSync(new URL("Dockerfile", root), "utf8");
  const [, major] = /^FROM node:(\d+)-/m.exec(text)!;
  expect(Number(major)).toBeGreaterThanOrEqual(Number(/\d+/.exec(manifest.engines.node)![0]));
  const [, place] = /^WORKDIR (\S+)\nCOPY \. \.$/m.exec(text)!;
  expect(text).toContain(`ENTRYPOINT ["${place}/whet"]`);
  // What is left out of the image is what git leaves out, and git itself.
  const lines = (name: string) => readFileSync(new URL(name, root), "utf8").trim().split("\n");
  const bare = (line: string) => line.replace(/^\*\*\//, "").replace(/\/$/, "");
  expect(new Set(lines(".dockerignore").map(bare))).toEqual(new Set([".git", ...lines(".gitignore").map(bare)]));
});

test("the engine's runtime that users fetch is the one that is tested here", () => {
  const { packages } = json("package-lock.json");
  expect(manifest.devDependencies["onnxruntime-node"]).toBe(runtimeVersion);
  for (const [name, digest] of Object.entries(runtimePackages)) {
    expect(packages[`node_modules/${name}`]).toMatchObject({ version: runtimeVersion, integrity: digest });
  }
});

test("messages name the command as this installation's user calls it, not as a checkout's does", () => {
  // There the name is decided.
  const own = /^core\/program\.ts$|\.test\.ts$/;
  const found: string[] = [];
  for (const name of readdirSync(new URL("src", root), { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts") || own.test(name)) continue;
    const lines = readFileSync(new URL(`src/${name}`, root), "utf8").split("\n");
    for (const [index, line] of lines.entries())
      if (line.includes("./whet ") && !/^\s*(\/\/|\/?\*)/.test(line))
        found.push(`${name}:${index + 1}: ${line.trim()}`);
  }
  expect(found).toEqual([]);
});
