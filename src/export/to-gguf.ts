// A merged model as one GGUF file, by llama.cpp's own converter, and what it wrote compared with the weights it was given.

import { spawn } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { elementCount } from "../core/arrays.ts";
import { SafetensorsFile } from "../engine/safetensors.ts";
import { GgufFile, readWeight } from "../gguf/index.ts";
import { ExportError } from "./errors.ts";
import type { mergedTypes } from "./merge.ts";

export const converterName = "convert_hf_to_gguf.py";

/** llama.cpp's converter: of LLAMA_CPP, or `onPath`. */
export function findConverter(onPath: string | undefined, environment: NodeJS.ProcessEnv = process.env): string {
  const place = environment["LLAMA_CPP"];
  const named = place && statSync(place, { throwIfNoEntry: false })?.isDirectory() ? join(place, converterName) : place;
  const found = named || onPath;
  if (found && existsSync(found)) return found;
  throw new ExportError(
    "export/no-converter",
    `gguf=true needs llama.cpp's ${converterName}, which is ${named ? `not at ${named}` : "not on the PATH, and LLAMA_CPP is not set"}. To have it: ` +
      "git clone --depth 1 https://github.com/ggml-org/llama.cpp && pip install -r llama.cpp/requirements/requirements-convert_hf_to_gguf.txt && export LLAMA_CPP=$PWD/llama.cpp",
  );
}

const outTypes: Readonly<Record<(typeof mergedTypes)[number], string>> = {
  base: "auto",
  float32: "f32",
  bfloat16: "bf16",
  float16: "f16",
};

interface GgufOptions {
  converter: string;
  python: string;
  dtype: (typeof mergedTypes)[number];
  signal: AbortSignal;
}

/** Writes `name` beside the merged model in `folder`; what was compared, in words. */
export async function writeGguf(
  folder: string,
  name: string,
  { converter, python, dtype, signal }: GgufOptions,
): Promise<string> {
  const file = join(folder, name);
  const args = [converter, folder, "--outfile", file, "--outtype", outTypes[dtype]];
  const { code, tail } = await run(python, args, signal);
  signal.throwIfAborted();
  if (code !== 0 || !existsSync(file))
    throw new ExportError(
      "export/converter-failed",
      `${converterName} ended with ${code ?? "a signal"}: ${tail}. Nothing was kept. It knows some tokenizers and models only; without gguf=true the merged model is written.`,
    );
  return compare(folder, file);
}

function run(
  python: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<{ code: number | null; tail: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(python, args, { stdio: ["ignore", "ignore", "pipe"], signal });
    let tail = "";
    child.stderr.on("data", (chunk: Buffer) => {
      tail = `${tail}${chunk.toString()}`.slice(-2000);
    });
    child.once("error", (error) => (signal.aborted ? resolve({ code: null, tail: "" }) : reject(error)));
    child.once("close", (code) => resolve({ code, tail: tail.trim().split("\n").at(-1)?.slice(0, 300) ?? "" }));
  });
}

/** Larger ones are not compared number by number. */
const maxNumbers = 2 ** 26;

function compare(folder: string, path: string): string {
  const gguf = new GgufFile(path);
  let same = 0;
  let larger = 0;
  try {
    for (const name of readdirSync(folder).filter((one) => one.endsWith(".safetensors"))) {
      const file = new SafetensorsFile(join(folder, name));
      try {
        for (const { name: tensor, shape } of file.entries.values()) {
          if (elementCount(shape) > maxNumbers) larger++;
          else {
            const theirs = readWeight(gguf, tensor);
            const ours = file.readFloat32(tensor);
            // bfloat16 keeps 8 bits of a number, float16 11.
            if (
              theirs?.length !== ours.length ||
              ours.some((value, at) => Math.abs(value - theirs[at]!) > 1e-6 + Math.abs(value) / 256)
            )
              throw new ExportError(
                "export/not-loadable",
                `${tensor} in the GGUF file is ${theirs ? "another than in the merged model" : "not there"}. Nothing was kept. Update llama.cpp, or leave gguf=true out.`,
              );
            same++;
          }
        }
      } finally {
        file.close();
      }
    }
  } finally {
    gguf.close();
  }
  return `${same} tensors of the GGUF file are those of the merged model${larger > 0 ? `; ${larger} larger ones were not compared` : ""}`;
}
