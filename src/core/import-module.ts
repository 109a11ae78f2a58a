// Imports a module that a user wrote, in TypeScript or JavaScript, on every supported Node.
import { pathToFileURL } from "node:url";
import { sourceEntries } from "./own-entries.mjs";
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
  // The package's entries are those of this installation.
  const entries = Object.entries(sourceEntries()).map(([name, source]) => [name, moduleUrl(new URL(source)).href]);
  register(Object.fromEntries(entries) as Record<string, string>);
}
