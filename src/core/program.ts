// How this installation runs: the source of a checkout, or what was built from it for the package.

import { readFileSync } from "node:fs";
import { shellWord } from "./shell.ts";

/** True in a checkout, where Node runs the TypeScript source; false in the package. */
export const runsFromSource: boolean = import.meta.url.endsWith(".ts");

/** Set in what prepared.mjs makes of a checkout's source: the folder it is in. */
declare const WHET_PREPARED: string | undefined;
const prepared = typeof WHET_PREPARED === "undefined" ? undefined : WHET_PREPARED;

/** True where modules are TypeScript, which not every Node can start. */
export const runsTypeScript: boolean = runsFromSource && prepared === undefined;

/** What a user of this installation types to call the command, from where this process was started. */
export const whet: string = runsFromSource ? launcher(process.env["WHET_LAUNCHER"]) : packaged(process.argv[1] ?? "");

/** The checkout's launcher as it was called; a name without a folder was given to sh. */
function launcher(called = "./whet"): string {
  return called.includes("/") ? shellWord(called) : `sh ${shellWord(called)}`;
}

/** npx knows an installed package inside its project; anywhere else it would look on the network, so the file is named. */
function packaged(file: string): string {
  const [project] = file.split(/[/\\]node_modules[/\\]/);
  const isInside = project !== file && `${process.cwd()}/`.startsWith(`${project}/`);
  return isInside ? "npx whetstone" : shellWord(file);
}

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
