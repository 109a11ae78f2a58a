// Fetches what the embedded engine computes with, once, before it is first used: ONNX Runtime from the npm registry, this platform's
// part of it only, into the cache folder. No script of a package runs; the content is checked against the digests below.
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { messageOf, WhetstoneError } from "../../../core/errors.ts";
import { hashFile, makeFolder } from "../../../core/files.ts";
import { waitForLock } from "../../../core/lock-file.ts";
import { registryProblem, runNpm } from "../../../core/npm.mjs";
import { extractTar } from "../../../core/tar.ts";
import { findRuntime, runtimeFolder, runtimeVersion } from "../../../graph/onnx-runtime.ts";

/** The packages and the digests of their tarballs, as package-lock.json has them (a test compares). */
export const runtimePackages: Readonly<Record<string, string>> = {
  "onnxruntime-node": "sha512-twhs1C2C/BFkz1yc5OY0KIU2GUq6DURO7hD4bx5Q2Qy3nAMJwRXW8xU3NVczE29VA9lolLOYepoD8fjTGOfIqw==",
  "onnxruntime-common":
    "sha512-7fdVWjAID1dVhH/G8qK3APARunV4VkBFoCQAP7qp4Wkab0mrorvmc+sqiT+mKXOzDqdjN5j+/Z9nb4gzNPWcyA==",
};

/** Makes sure that the engine can compute. Says what it does; does nothing where ONNX Runtime is already there. */
export async function ensureRuntime(say: (line: string) => void): Promise<void> {
  if (findRuntime()) return;
  if (process.env["WHET_NO_INSTALL"] === "1") throw missing("and WHET_NO_INSTALL=1 forbids fetching it");
  const folder = runtimeFolder();
  try {
    makeFolder(dirname(folder));
  } catch (error) {
    throw missing(`and ${dirname(folder)} cannot be made (${messageOf(error)})`);
  }
  const release = await waitForLock(`${folder}.lock`, (holder) =>
    say(`waiting for process ${holder}, which is fetching ONNX Runtime`),
  );
  try {
    // Another process may have fetched it while this one waited.
    if (!findRuntime()) await fetchInto(folder, say);
  } finally {
    release();
  }
}

async function fetchInto(folder: string, say: (line: string) => void): Promise<void> {
  say(`fetching ONNX Runtime ${runtimeVersion} for the embedded engine from the npm registry (114 MB, once)`);
  const problem = await registryProblem();
  const draft = `${folder}.${randomBytes(4).toString("hex")}`;
  mkdirSync(join(draft, "node_modules"), { recursive: true });
  try {
    for (const [name, digest] of Object.entries(runtimePackages)) {
      const tarball = await download(name, draft, problem);
      await check(tarball, digest, name);
      const native = `bin/napi-v6/${process.platform}/${process.arch}/`;
      await extractTar(createReadStream(tarball), join(draft, "node_modules", name), { maxBytes: 1 << 30 }, (path) => {
        const inside = path.replace(/^[^/]+\//, ""); // of npm's "package/"
        return !inside.startsWith("bin/") || inside.startsWith(native) ? inside : undefined;
      });
      rmSync(tarball);
    }
    rmSync(folder, { recursive: true, force: true });
    renameSync(draft, folder);
  } catch (error) {
    if (error instanceof WhetstoneError) throw error;
    throw missing(`and could not be written to ${folder} (${messageOf(error)})`);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  if (!findRuntime()) throw missing(`and what npm fetched into ${folder} is not usable`);
  say(`ONNX Runtime is in ${folder}`);
}

/** The package's tarball in `folder`, by npm, so that its registry, proxy and login settings hold. */
async function download(name: string, folder: string, problem: string | undefined): Promise<string> {
  const args = ["pack", `${name}@${runtimeVersion}`, "--pack-destination", folder, "--prefer-offline"];
  if (problem !== undefined) args.push("--offline"); // npm's cache may have it
  const { code, stderr } = await runNpm(args, problem === undefined ? {} : { limitMs: 30_000 });
  const file = readdirSync(folder).find((entry) => entry.endsWith(".tgz"));
  if (code === 0 && file !== undefined) return join(folder, file);
  throw missing(
    problem === undefined
      ? `and npm could not fetch it: ${stderr.trim().split("\n").slice(-4).join(" ")}`
      : `and the npm registry cannot be reached (${problem})`,
  );
}

async function check(tarball: string, digest: string, name: string): Promise<void> {
  const hash = await hashFile(tarball, createHash("sha512"));
  const found = `sha512-${hash.digest("base64")}`;
  if (found !== digest) throw missing(`and the registry's ${name} is not the one that was tested (${found})`);
}

function missing(why: string): WhetstoneError {
  return new WhetstoneError(
    "cli/no-engine-runtime",
    `The embedded engine needs ONNX Runtime ${runtimeVersion}, which is not installed, ${why}. ` +
      `To install it in this project: npm install --ignore-scripts onnxruntime-node@${runtimeVersion}. Or use a server: base_url=… or TINKER_API_KEY.`,
  );
}
