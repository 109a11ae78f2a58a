// How this installation runs: the source of a checkout, or what was built from it for the package.

import { readFileSync } from "node:fs";

/** True in a checkout, where Node runs the TypeScript source; false in the package. */
export const runsFromSource: boolean = import.meta.url.endsWith(".ts");

/** Set in what prepared.mjs makes of a checkout's source: the folder it is in. */
declare const WHET_PREPARED: string | undefined;
const prepared = typeof WHET_PREPARED === "undefined" ? undefined : WHET_PREPARED;

/** True where modules are TypeScript, which not every Node can start. */
export const runsTypeScript: boolean = runsFromSource && prepared === undefined;

/** What a user of this installation types to call the command. */
export const whet: string = runsFromSource ? "./whet" : "npx whetstone";

/** The version of this installation. */
export const version: string = (
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string }
).version;

/** The file of a module that is named by its .ts source, as it is in this installation. */
export function moduleUrl(source: URL): URL {
  if (runsTypeScript) return source;
  const built = source.href.replace(/\.ts$/, ".js");
  return new URL(prepared === undefined ? built : built.replace(new URL("../", import.meta.url).href, prepared));
}
