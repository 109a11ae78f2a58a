// Packages of the npm registry that some tests use as their users do. They are installed on first use, beside this checkout's own, and
// kept: what `./whet` needs stays small.
import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { cacheFolder } from "../../src/core/cache.ts";
import { makeOnce } from "../../src/core/files.ts";

/** What agents are written with, in one folder. */
const clients = {
  openai: "7.55.0",
  ai: "7.0.173",
  "@ai-sdk/openai-compatible": "3.0.92",
  "@langchain/openai": "1.6.0",
  "@langchain/core": "1.2.13",
};

export type Packages = { folder: string } | { missing: string };

let asked: Promise<Packages> | undefined;

/** The folder in whose `node_modules` the clients are, or why they cannot be had. */
export const clientPackages = (): Promise<Packages> => (asked ??= openPackages("clients", clients));

/** Imports a package of such a folder. */
export async function importFrom<Module>(folder: string, name: string): Promise<Module> {
  const entry = join(folder, "node_modules", `.entry-${name.replaceAll(/\W/g, "-")}.mjs`);
  if (!existsSync(entry)) writeFileSync(entry, `export * from ${JSON.stringify(name)};\n`);
  return (await import(/* @vite-ignore */ pathToFileURL(entry).href)) as Module;
}

async function openPackages(name: string, dependencies: Readonly<Record<string, string>>): Promise<Packages> {
  const text = JSON.stringify({ private: true, type: "module", dependencies });
  const folder = join(cacheFolder(), "npm", `${name}-${Buffer.from(text).toString("base64url").slice(-24)}`);
  try {
    await makeOnce(folder, async (draft) => {
      writeFileSync(join(draft, "package.json"), text);
      const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent"];
      await promisify(execFile)("npm", ["install", ...flags], { cwd: draft, timeout: 600_000 });
    });
    return { folder };
  } catch (error) {
    const reason = (error as { stderr?: string }).stderr || String(error);
    return {
      missing: `${Object.keys(dependencies).join(", ")} cannot be installed here: ${reason.trim().slice(-300)}`,
    };
  }
}
