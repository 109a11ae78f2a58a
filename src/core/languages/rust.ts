import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { harnessOf, listed, type MakeCall, reportFile, spelled, starterIn, withoutTexts } from "./call.ts";
import { linkerFiles, stepsOf } from "./gcc.ts";
import { type Language, megabyte, type Tools } from "./language.ts";
import { findOnPath, keptFolder, linesOf, nameFor, said } from "./machine.ts";

const placeOfLink = "/opt/link";
const allocator = "allocator.o";

async function find(): Promise<Tools | string> {
  const named = findOnPath("rustc");
  if (named === undefined) return "rustc";
  const linker = findOnPath("gcc") ?? findOnPath("cc");
  if (linker === undefined) return "gcc, which links";
  // The command may be rustup's, which starts the compiler that it stands for. Where HOME is another, it is told where it lies.
  const rustup = join(dirname(dirname(dirname(named))), ".rustup");
  const asked = ["--print", "sysroot"];
  const root = (await said(named, ...asked).catch(() => said("env", `RUSTUP_HOME=${rustup}`, named, ...asked))).trim();
  const compiler = join(root, "bin", "rustc");
  const [, version = ""] = (await said(compiler, "--version")).split(" ");
  const flags = ["--edition", "2021", "-O", "--cap-lints", "allow", "-C", "strip=symbols", "-C", "codegen-units=1"];
  const name = nameFor(`rust-${version}`, compiler, linker, flags);
  // The compiler would start the linker, and that others. What it would be told is what it says of an empty program, whose allocator every other takes.
  const link = keptFolder(name, placeOfLink, async (folder) => {
    const empty = join(folder, "empty.rs");
    writeFileSync(empty, "fn main() {}");
    const shown = ["-C", "save-temps", "-C", `linker=${linker}`, "--print", "link-args"];
    const all = await said(compiler, ...flags, ...shown, empty, "-o", join(folder, "program"));
    const line = linesOf(all).find((text) => text.includes(".rcgu.o")) ?? "";
    const words = [...line.matchAll(/"([^"]*)"/g)].map(([, word]) => word!);
    const objects = words.filter((word) => word.endsWith(".rcgu.o"));
    for (const object of objects)
      cpSync(object, join(folder, /-cgu\.\d+\.rcgu\.o$/.test(object) ? "solution.o" : allocator));
    const args = words
      .slice(words.indexOf(linker) + 1)
      .filter(
        (word, at, all) =>
          !/^-fuse-ld|\/gcc-ld$|\/symbols\.o$|\/raw-dylibs$/.test(`${word}`) && !all[at + 1]?.endsWith("/raw-dylibs"),
      )
      .map((word) => (objects.includes(word) ? join(folder, /-cgu\./.test(word) ? "solution.o" : allocator) : word));
    const [step] = await stepsOf(linker, args);
    const inside: Record<string, string> = {
      [join(folder, "solution.o")]: "solution.o",
      [join(folder, allocator)]: join(placeOfLink, allocator),
      [join(folder, "program")]: "program",
    };
    writeFileSync(join(folder, "link.json"), JSON.stringify(step!.command.map((word) => inside[word] ?? word)));
  });
  return {
    version: `rustc ${version}`,
    files: [],
    compile: {
      files: [compiler, join(root, "lib"), ...(await linkerFiles(linker)), link.held],
      prepare: link.prepare,
      steps: ({ at }) => [
        {
          command: [compiler, "--sysroot", root, ...flags, "--emit=obj", "solution.rs", "-o", "solution.o"],
          output: "solution.o",
        },
        {
          command: (JSON.parse(readFileSync(join(link.folder, "link.json"), "utf8")) as string[]).map((word) =>
            word.replace(placeOfLink, at(link.held)),
          ),
          output: "program",
        },
      ],
      environment: { LD_LIBRARY_PATH: join(root, "lib") },
    },
    command: () => ["./program"],
    addressBytes: 1024 * megabyte,
    stackBytes: 256 * megabyte,
  };
}

const harness = harnessOf("call.rs");

/** A module behind the program, which sees its private functions; the process begins there, so that a main of the program's own is not run. */
const call: MakeCall = (source, calls, report) => {
  const plain = withoutTexts(source);
  const has = (pattern: string) => new RegExp(pattern).test(plain);
  const inImpl = has("\\bimpl\\s+Solution\\b");
  const solution =
    has("\\bstruct\\s+Solution\\s*(?:;|\\{\\s*\\})") || !has("\\bstruct\\s+Solution\\b")
      ? "(super::Solution {})"
      : has("\\bfn\\s+new\\s*\\(\\s*\\)")
        ? "super::Solution::new()"
        : "<super::Solution as Default>::default()";
  const lines = calls.map(({ name, count }) => {
    const own = spelled(source, name);
    const takesSelf = has(`\\bfn\\s+${own}\\s*(?:<[^()]*>)?\\(\\s*(?:&\\s*)?(?:'\\w+\\s+)?(?:mut\\s+)?self\\b`);
    const where = !inImpl ? `super::${own}` : takesSelf ? `${solution}.${own}` : `super::Solution::${own}`;
    return `if function == "${name}" { return Some(value(${where}(${listed(count, () => "argument(whetstone_arguments)")}))); }`;
  });
  const file =
    report === "descriptor"
      ? "unsafe { <std::fs::File as std::os::unix::io::FromRawFd>::from_raw_fd(3) }"
      : `std::fs::File::create("${reportFile}").unwrap()`;
  return {
    source: [
      `#![no_main] ${source}`,
      inImpl && !has("\\b(?:struct|enum)\\s+Solution\\b") ? "struct Solution;" : "",
      `mod whetstone_call {\n${harness}\nfn report_file() -> std::fs::File { ${file} }`,
      `fn calls(function: &str, arguments: Vec<Json>) -> Option<String> {\nlet whetstone_arguments = &mut arguments.into_iter();`,
      ...lines,
      "None\n}\n}\n",
    ].join("\n"),
    missing: (said) => /\bwhetstone_arguments\b/.test(said.slice(said.search(/^error/m)).split(/\n(?=error)/)[0]!),
  };
};

const starter = starterIn({
  types: { bool: "bool", int: "i32", long: "i64", double: "f64", string: "String" },
  list: (of) => `Vec<${of}>`,
  map: (of) => `std::collections::HashMap<String, ${of}>`,
  parameter: (name, type) => `${name}: ${type}`,
  definition: (name, parameters, result) => `fn ${name}(${parameters}) -> ${result} {\n    // YOUR CODE HERE\n}`,
});

export const rust: Language = {
  title: "Rust",
  tags: ["rust", "rs"],
  fusion: "rust",
  fileName: "solution.rs",
  starter,
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
    call,
    install: "curl https://sh.rustup.rs -sSf | sh -s -- -y, and apt-get install gcc",
    signs: { memory: /memory allocation of \d+ bytes failed/ },
  },
};
