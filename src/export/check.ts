// Looks at what was exported with other eyes than those that wrote it: this repository's reader of the engine, and Python's libraries
// where there are some. What could not be looked at is said too.
import { execFile } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { messageOf } from "../core/errors.ts";
import { SafetensorsFile } from "../engine/safetensors.ts";
import { ExportError } from "./errors.ts";

interface CheckOptions {
  /** The interpreter whose libraries are used. */
  python: string;
  /** The base model on this machine; undefined where it is not. */
  base: string | undefined;
  signal: AbortSignal;
}

export interface Checked {
  done: string[];
  /** With how it could be. */
  left: string[];
}

const script = fileURLToPath(new URL("check.py", import.meta.url));
const limitMs = 600_000;

/** Rejects where something is wrong with it. */
export async function checkExport(folder: string, { python, base, signal }: CheckOptions): Promise<Checked> {
  const names = readdirSync(folder).filter((name) => name.endsWith(".safetensors"));
  const isAdapter = names.includes("adapter_model.safetensors");
  const count = names.reduce((sum, name) => sum + readBack(join(folder, name), isAdapter), 0);
  const done = [`${count} tensors read back${isAdapter ? ", every number finite" : ""}`];
  // As float32, with room for the rest: a model that fills the memory takes the machine with it.
  const bytes = 2 * weightsIn(isAdapter && base !== undefined ? base : folder);
  const fits = bytes < freemem() / 2;
  const load = fits && (!isAdapter || base !== undefined) ? "load" : "read";
  const library = isAdapter ? "peft" : "transformers";
  const left: string[] = [];
  try {
    const options = { signal, timeout: limitMs, maxBuffer: 2 ** 24, env: { ...process.env, HF_TOKEN: "" } };
    const { stdout } = await promisify(execFile)(python, [script, folder, base ?? "", load], options);
    const said = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Record<
      "checked" | "wrong" | "missing",
      string[]
    >;
    done.push(...said.checked);
    if (said.wrong.length > 0)
      throw new ExportError(
        "export/not-loadable",
        `What was written does not load: ${said.wrong.join("; ")}. Nothing was kept. Report it with the base model's name; python=none writes without this check.`,
      );
    if (said.missing.length > 0)
      left.push(
        `in ${library}: ${python} has no ${said.missing.join(", ")}. To check: pip install torch transformers safetensors${isAdapter ? " peft" : ""}, or python=PATH`,
      );
    else if (!fits)
      left.push(`in ${library}: loading takes about ${(bytes / 1e9).toFixed(1)} GB, and less than twice that is free`);
    else if (load === "read") left.push(`in ${library}: the base model is not on this machine. To check: base=FOLDER`);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ExportError) throw error;
    left.push(
      `in ${library}: ${python} could not do it (${messageOf(error).split("\n")[0]?.slice(0, 200)}). To check: python=PATH of one with ${library}`,
    );
  }
  return { done, left };
}

/** The number of its tensors; `numbers`: rejects where one of their numbers is none. */
function readBack(path: string, numbers: boolean): number {
  const file = new SafetensorsFile(path);
  try {
    for (const name of numbers ? file.entries.keys() : [])
      if (!file.readFloat32(name).every(Number.isFinite))
        throw new ExportError(
          "export/not-finite",
          `${name} holds a number that is none. Nothing was kept. The run has diverged: export an earlier checkpoint with checkpoint=.`,
        );
    return file.entries.size;
  } finally {
    file.close();
  }
}

const weightsIn = (folder: string): number =>
  readdirSync(folder)
    .filter((name) => /\.(safetensors|gguf)$/.test(name))
    .reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
