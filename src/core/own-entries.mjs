// The package's entries where nothing is built: package.json says that "whetstone/tinker" is dist/client/index.js, and that is built
// from src/client/index.ts. Plain JavaScript, for module hooks.
import { readFileSync } from "node:fs";

/** Every entry with code, by the name it is imported by, with the file URL of its source; in the package, of where that would be. */
export function sourceEntries() {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return Object.fromEntries(
    Object.entries(manifest.exports)
      .filter(([, target]) => typeof target === "object")
      .map(([path, { default: built }]) => [
        path.replace(/^\./, manifest.name),
        new URL(built.replace(/^\.\/dist\//, "../").replace(/\.js$/, ".ts"), import.meta.url).href,
      ]),
  );
}

let entries;

/** The module hook of a checkout: an entry's name stands for its source. */
export function resolve(specifier, context, nextResolve) {
  if (/^whetstone(\/|$)/.test(specifier)) entries ??= sourceEntries();
  return nextResolve(entries?.[specifier] ?? specifier, context);
}
