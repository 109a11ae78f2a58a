import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { headerFiles, linkerFiles } from "./gcc.ts";
import type { Language, Tools } from "./language.ts";
import { findOnPath, made, madeFolder, said } from "./machine.ts";

const megabyte = 1024 ** 2;
const placeOfHeaders = "/opt/headers";

async function find(): Promise<Tools | string> {
  const compiler = findOnPath("g++");
  if (compiler === undefined) return "g++";
  const version = (await said(compiler, "-dumpfullversion", "-dumpversion")).trim();
  const standard = Number.parseInt(version, 10) > 10 ? "gnu++20" : "gnu++17";
  const flags = [`-std=${standard}`, "-O2", "-w", "-fmax-errors=5"];
  // Most programs include one header with all others in it, which takes longer to read than to compile the rest.
  const name = createHash("sha256")
    .update(JSON.stringify([compiler, version, flags]))
    .digest("hex")
    .slice(0, 16);
  const headers = `cpp-${version}-${name}`;
  const prepare = async (folder: string) => {
    mkdirSync(join(folder, "bits"));
    const all = (await said(compiler, "-E", "-M", "-x", "c++", "-include", "bits/stdc++.h", "/dev/null")).match(
      /\S*\/bits\/stdc\+\+\.h/,
    );
    if (all) await said(compiler, ...flags, "-x", "c++-header", all[0], "-o", join(folder, "bits", "stdc++.h.gch"));
  };
  return {
    version: `g++ ${version}`,
    files: [],
    compile: {
      files: [
        ...(await linkerFiles(compiler)),
        ...(await headerFiles(compiler)),
        [madeFolder(headers), placeOfHeaders],
      ],
      prepare: () => made(headers, prepare),
      command: () => [compiler, ...flags, `-I${placeOfHeaders}`, "solution.cpp", "-o", "program"],
      output: "program",
      wallMs: 30_000,
    },
    command: () => ["./program"],
    addressBytes: 1024 * megabyte,
    stackBytes: 256 * megabyte,
  };
}

export const cpp: Language = {
  title: "C++",
  tags: ["cpp", "c++", "cc", "cxx", "cpp17", "cpp20", "c++17", "c++20"],
  fusion: "cpp",
  fileName: "solution.cpp",
  comment: "//",
  startMs: 250,
  note: "It is compiled by g++ with -O2, in C++20.",
  sum: "#include <iostream>\nint main() {\n  long long a, b;\n  std::cin >> a >> b;\n  std::cout << a + b << '\\n';\n}",
  runtime: {
    find,
    install: "apt-get install g++",
    signs: { memory: /std::bad_alloc|std::bad_array_new_length|failed to map segment/ },
  },
};
