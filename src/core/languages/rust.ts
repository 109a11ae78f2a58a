import { join } from "node:path";
import { linkerFiles } from "./gcc.ts";
import type { Language, Tools } from "./language.ts";
import { findOnPath, said } from "./machine.ts";

const megabyte = 1024 ** 2;

async function find(): Promise<Tools | string> {
  const named = findOnPath("rustc");
  if (named === undefined) return "rustc";
  const linker = findOnPath("gcc") ?? findOnPath("cc");
  if (linker === undefined) return "gcc, which links";
  // The command may be rustup's, which starts the compiler that it stands for.
  const root = (await said(named, "--print", "sysroot")).trim();
  const compiler = join(root, "bin", "rustc");
  const [, version] = (await said(compiler, "--version")).split(" ");
  return {
    version: `rustc ${version}`,
    files: [],
    compile: {
      files: [compiler, join(root, "lib"), ...(await linkerFiles(linker))],
      command: () => [
        ...[
          compiler,
          "--edition",
          "2021",
          "-O",
          "--cap-lints",
          "allow",
          "-C",
          "strip=symbols",
          "-C",
          `linker=${linker}`,
        ],
        ...["solution.rs", "-o", "program"],
      ],
      output: "program",
      wallMs: 30_000,
    },
    command: () => ["./program"],
    addressBytes: 1024 * megabyte,
    stackBytes: 256 * megabyte,
  };
}

export const rust: Language = {
  title: "Rust",
  tags: ["rust", "rs"],
  fusion: "rust",
  fileName: "solution.rs",
  comment: "//",
  startMs: 250,
  note: "It is compiled by rustc with -O, in edition 2021, without other crates.",
  sum: [
    "fn main() {",
    "    let mut line = String::new();",
    "    std::io::stdin().read_line(&mut line).unwrap();",
    "    let sum: i64 = line.split_whitespace().map(|word| word.parse::<i64>().unwrap()).sum();",
    '    println!("{}", sum);',
    "}",
  ].join("\n"),
  runtime: {
    find,
    install: "curl https://sh.rustup.rs -sSf | sh -s -- -y, and apt-get install gcc",
    signs: { memory: /memory allocation of \d+ bytes failed/ },
  },
};
