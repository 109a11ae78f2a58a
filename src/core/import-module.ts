// Imports a module that a user wrote, in TypeScript or JavaScript, on every supported Node.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { moduleUrl } from "./program.ts";

let prepared: Promise<void> | undefined;

/** Its exports. Rejects with what is wrong in it. */
export async function importModule(path: string): Promise<Readonly<Record<string, unknown>>> {
  prepared ??= registerHooks();
  await prepared;
  return (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>;
}

async function registerHooks(): Promise<void> {
  const hooks = new URL("./module-hooks.mjs", import.meta.url);
  const { register } = (await import(hooks.href)) as typeof import("./module-hooks.mjs");
  register(ownEntries());
}

/** The package's entries, by the name they are imported by, as they are in this installation. */
function ownEntries(): Record<string, string> {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    name: string;
    exports: Record<string, string | { default: string }>;
  };
  return Object.fromEntries(
    Object.entries(manifest.exports).flatMap(([path, target]) => {
      if (typeof target === "string") return [];
      const source = target.default.replace(/^\.\/dist\//, "../").replace(/\.js$/, ".ts");
      return [[path.replace(/^\./, manifest.name), moduleUrl(new URL(source, import.meta.url)).href]];
    }),
  );
}
