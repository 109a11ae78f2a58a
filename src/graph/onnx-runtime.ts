// Finds ONNX Runtime on this machine. It is large and only the engine needs it, so the package does not depend on it: it is the one
// that is installed beside this package (a checkout's, or a project's own) if it has the right version, else the private copy that
// the command line fetches on first use (cli/engines/embedded/runtime.ts).
import "./no-telemetry.ts";
import { createRequire } from "node:module";
import { join } from "node:path";
import { cacheFolder } from "../core/cache.ts";
import { messageOf } from "../core/errors.ts";
import { GraphError } from "./errors.ts";

/** The version whose results are tested; another one could compute other bits. */
export const runtimeVersion = "1.30.0";

/** Where the private copy is, or will be. */
export function runtimeFolder(): string {
  return join(cacheFolder(), "engine", `onnxruntime-${runtimeVersion}-${process.platform}-${process.arch}`);
}

/** A `require` that finds ONNX Runtime in its version, or undefined where there is none. */
export function findRuntime(): NodeJS.Require | undefined {
  return [import.meta.url, join(runtimeFolder(), "index.js")]
    .map((from) => createRequire(from))
    .find((require) => installedVersion(require) === runtimeVersion);
}

function installedVersion(require: NodeJS.Require): string | undefined {
  try {
    return (require("onnxruntime-node/package.json") as { version: string }).version;
  } catch {
    return undefined;
  }
}

let loaded: typeof import("onnxruntime-node") | undefined;

/** ONNX Runtime, loaded when it is first needed: modules that only might compute can be imported without it. */
export function onnxRuntime(): typeof import("onnxruntime-node") {
  loaded ??= load();
  return loaded;
}

function load(): typeof import("onnxruntime-node") {
  const require = findRuntime();
  if (!require)
    throw new GraphError(
      "graph/no-runtime",
      `ONNX Runtime ${runtimeVersion} is not installed. Install it in this project: npm install --ignore-scripts onnxruntime-node@${runtimeVersion}`,
    );
  try {
    return require("onnxruntime-node") as typeof import("onnxruntime-node");
  } catch (error) {
    throw new GraphError(
      "graph/no-runtime",
      `ONNX Runtime ${runtimeVersion} at ${require.resolve("onnxruntime-node")} cannot be loaded: ${messageOf(error)}. ` +
        `It needs 64-bit Linux, macOS or Windows, and a file system that runs programs; WHETSTONE_CACHE names another folder.`,
      { cause: error },
    );
  }
}
