// The compiler of TypeScript, where types are to be checked: version 7 or later, which is one program, from Whetstone's own packages, those of the
// folder where the command was typed, or those that the command on PATH belongs to.
import { readFileSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Check, Held } from "./language.ts";
import { findOnPath } from "./machine.ts";

const install = "which npm install typescript@7 @types/node brings";
/** Packages may be where the jail has folders of its own, such as below /tmp. */
const placeOfCompiler = "/opt/typescript";
const placeOfTypes = "/opt/types/node";
/** Whatever the version takes for granted. A program is a module, so that its names are its own; it may import and require. */
const flags =
  "--strict --target es2023 --lib es2023 --module preserve --moduleDetection force --esModuleInterop --types node --skipLibCheck " +
  "--noEmitOnError --ignoreConfig --pretty false --singleThreaded --outDir .";

/** Where packages are looked for, nearest first. */
function bases(): string[] {
  const command = findOnPath("tsc");
  return [import.meta.url, join(process.cwd(), "package.json"), ...(command ? [realpathSync(command)] : [])];
}

const folderOf = (name: string, from: string): string | undefined => {
  try {
    return dirname(createRequire(from).resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
};

export function findCheck(fileName: string, from = bases()): Check | string {
  const platform = `@typescript/typescript-${process.platform}-${process.arch}`;
  let missing = `TypeScript 7, ${install}`;
  for (const base of from) {
    const typescript = folderOf("typescript", base);
    const compiler = typescript && folderOf(platform, join(typescript, "package.json"));
    if (!compiler) continue;
    const types = folderOf("@types/node", base) ?? folderOf("@types/node", join(typescript, "package.json"));
    if (types) return checkOf(compiler, types, fileName);
    missing = `@types/node, ${install}`;
  }
  return missing;
}

function checkOf(compiler: string, types: string, fileName: string): Check {
  const { version } = JSON.parse(readFileSync(join(compiler, "package.json"), "utf8")) as { version: string };
  const library: Held = [join(compiler, "lib"), placeOfCompiler];
  const shown: Held = [types, placeOfTypes];
  return {
    version: `TypeScript ${version} in ${compiler}`,
    files: [library, shown],
    steps: ({ names, at }) => [
      {
        command: [join(at(library), "tsc"), ...flags.split(" "), "--typeRoots", dirname(at(shown)), ...names],
        output: fileName.replace(/\.ts$/, ".js"), // no program: it is there where there were no errors
      },
    ],
    environment: { GOMAXPROCS: "1" },
    said: (text) => text.replaceAll(/^(\S+\.ts)\((\d+),(\d+)\): /gm, "$1:$2:$3: "),
  };
}
