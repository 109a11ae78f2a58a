// The page's own files and the two libraries it uses, read from disk as they are: there is nothing to build. In a checkout the libraries
// are development packages; the build puts copies into the package.
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runsFromSource } from "../core/program.ts";

const pageFolder = fileURLToPath(new URL("./page/", import.meta.url));
const vendorFolder = join(pageFolder, "../vendor");

/** Where each library file is served, and which file of its package it is. The build reads the same list. */
const vendorFiles = JSON.parse(readFileSync(new URL("./vendor.json", import.meta.url), "utf8")) as Record<
  string,
  string
>;

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

export interface Asset {
  type: string;
  bytes: Buffer;
}

/** A file of the page by the path it is served under; undefined where there is none. */
export async function readAsset(path: string): Promise<Asset | undefined> {
  const file = path === "/" ? join(pageFolder, "index.html") : (pageFile(path) ?? vendorFile(path));
  const type = file && types[extname(file)];
  if (!file || !type) return undefined;
  try {
    return { type, bytes: await readFile(file) };
  } catch {
    return undefined;
  }
}

function pageFile(path: string): string | undefined {
  const name = /^\/page\/([a-z][a-z-]*\.(?:js|css|svg))$/.exec(path)?.[1];
  return name === undefined ? undefined : join(pageFolder, name);
}

function vendorFile(path: string): string | undefined {
  const name = path.startsWith("/vendor/") ? path.slice("/vendor/".length) : "";
  if (!Object.hasOwn(vendorFiles, name)) return undefined;
  if (!runsFromSource) return join(vendorFolder, name);
  const source = vendorFiles[name]!;
  const [library, ...rest] = source.split("/");
  return join(dirname(createRequire(import.meta.url).resolve(`${library}/package.json`)), ...rest);
}
