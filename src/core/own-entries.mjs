// The package's entries inside the checkout, where nothing is built: package.json says that "whetstone/tinker" is
// dist/client/index.js, and dist/client/index.js is built from src/client/index.ts.
import { readFileSync } from "node:fs";

let entries;

/** The file URL of the source behind one of the package's entries; undefined for every other specifier. */
export function sourceOfEntry(specifier) {
  if (specifier !== "whetstone" && !specifier.startsWith("whetstone/")) return undefined;
  entries ??= sourceEntries();
  return entries[specifier];
}

/** Every entry with code, by the name it is imported by, with the file URL of its source. */
export function sourceEntries() {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return Object.fromEntries(
    Object.entries(manifest.exports)
      .filter(([, target]) => typeof target === "object")
      .map(([path, { default: built }]) => [
        path.replace(/^\./, manifest.name),
        new URL(`../../${built.replace(/^\.\/dist\//, "src/").replace(/\.js$/, ".ts")}`, import.meta.url).href,
      ]),
  );
}
