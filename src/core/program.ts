// How this installation runs: the source of a checkout, or what was built from it for the package.

import { readFileSync } from "node:fs";

/** True in a checkout, where Node runs the TypeScript source; false in the package. */
export const runsFromSource: boolean = import.meta.url.endsWith(".ts");

/** What a user of this installation types to call the command. */
export const whet: string = runsFromSource ? "./whet" : "npx whetstone";

/** The version of this installation. */
export const version: string = (
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string }
).version;

/** The file of a module that is named by its .ts source, as it is in this installation. */
export function moduleUrl(source: URL): URL {
  return runsFromSource ? source : new URL(source.href.replace(/\.ts$/, ".js"));
}
