import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { harnessOf, listed, type MakeCall, reportFile, spelled, starterIn, withoutTexts } from "./call.ts";
import { headerFiles, linkerFiles, stepsOf } from "./gcc.ts";
import { type Language, megabyte, type Tools } from "./language.ts";
import { findOnPath, keptFolder, nameFor, said } from "./machine.ts";

/** Stands for the program where GCC wants a file that is there. */
const nothing = "/dev/null";
const placeOfHeaders = "/opt/headers";
/** For a program that includes it after others, when what is compiled ahead is of no use. */
const again = "#include_next <bits/stdc++.h>\n";

async function find(): Promise<Tools | string> {
  const compiler = findOnPath("g++");
  if (compiler === undefined) return "g++";
  const version = (await said(compiler, "-dumpfullversion", "-dumpversion")).trim();
  const standard = Number.parseInt(version, 10) > 10 ? "gnu++20" : "gnu++17";
  const flags = [`-std=${standard}`, "-O2", "-w", "-fmax-errors=5"];
  // Most programs include one header with all others in it, which takes longer to read than to compile the rest.
  const name = nameFor(`cpp-${version}`, compiler, flags, again);
  const headers = keptFolder(name, placeOfHeaders, async (folder) => {
    mkdirSync(join(folder, "bits"));
    writeFileSync(join(folder, "bits", "stdc++.h"), again);
    const all = (await said(compiler, "-E", "-M", "-x", "c++", "-include", "bits/stdc++.h", "/dev/null")).match(
      /\S*\/bits\/stdc\+\+\.h/,
    );
    if (all) await said(compiler, ...flags, "-x", "c++-header", all[0], "-o", join(folder, "bits", "stdc++.h.gch"));
  });
  const steps = await stepsOf(compiler, [...flags, "-I", placeOfHeaders, "-x", "c++", nothing, "-o", "program"]);
  return {
    version: `g++ ${version}`,
    files: [],
    compile: {
      files: [...(await linkerFiles(compiler)), ...(await headerFiles(compiler)), headers.held],
      prepare: headers.prepare,
      steps: ({ at }) =>
        steps.map(({ command, output }) => ({
          command: command.map((word) =>
            word === placeOfHeaders ? at(headers.held) : word === nothing ? "solution.cpp" : word,
          ),
          output,
        })),
    },
    command: () => ["./program"],
    addressBytes: 1024 * megabyte,
    stackBytes: 256 * megabyte,
  };
}

/** How a function of so many arguments is taken, whatever their types: a pointer to it, or to a method. Overloads of other lengths do not fit. */
function takers(count: number): string {
  const types = listed(count, (index) => `A${index}`);
  const some = (before: string) =>
    `template <${[before, ...(count > 0 ? [listed(count, (index) => `class A${index}`)] : [])].join(", ")}>`;
  const given = listed(count, (index) => `static_cast<A${index}&&>(a${index})`);
  const rest = count > 0 ? `, ${types}` : "";
  const numbers = `std::make_index_sequence<${count}>{}`;
  const method = (constant: string) =>
    `${some("class R, class C")} void call(R (C::*f)(${types})${constant}) { C* on = new C(); ` +
    `with<R${rest}>([&](${listed(count, (index) => `A${index} a${index}`)}) -> R { return (on->*f)(${given}); }, ${numbers}); }`;
  return `${some("class R")} void call(R (*f)(${types})) { with<R${rest}>(f, ${numbers}); }\n${method("")}\n${method(" const")}`;
}

const harness = harnessOf("call.cpp");

/** All in one text: the harness, then the program, then the call. A main of the program's own is not run. */
const call: MakeCall = (source, calls, report) => {
  const plain = withoutTexts(source);
  const to = report === "descriptor" ? "3" : `open("${reportFile}", O_WRONLY | O_CREAT | O_TRUNC, 0600)`;
  const inClass = /\b(?:class|struct)\s+Solution\b/.test(plain);
  const taken = calls.map(({ name }) => {
    const own = spelled(source, name);
    return `  if (whetstone::function == "${name}") whetstone::call(&${inClass ? "Solution" : ""}::${own});`;
  });
  return {
    source: [
      `#define WHETSTONE_REPORT ${to}`,
      harness,
      `namespace whetstone {\n${[...new Set(calls.map(({ count }) => count))].map(takers).join("\n")}\n}`,
      // As contest sites have it for those who write only the function.
      /\bstd\s*::|\busing\s+namespace\b/.test(plain) ? "" : "using namespace std;",
      `#define main whetstone_program_main\n#line 1 "solution.cpp"\n${source}`,
      `#undef main\n#line 1 "call"\nvoid whetstone::calls() {\n${taken.join("\n")}\n}\n`,
    ].join("\n"),
    missing: (said) => /^call:/.test(said.split("\n").find((line) => /\berror\b/.test(line)) ?? ""),
  };
};

const starter = starterIn({
  types: { bool: "bool", int: "int", long: "long long", double: "double", string: "string" },
  list: (of) => `vector<${of}>`,
  map: (of) => `map<string, ${of}>`,
  parameter: (name, type) => `${type} ${name}`,
  definition: (name, parameters, result) => `${result} ${name}(${parameters}) {\n    // YOUR CODE HERE\n}`,
});

export const cpp: Language = {
  title: "C++",
  tags: ["cpp", "c++", "cc", "cxx", "cpp17", "cpp20", "c++17", "c++20"],
  fusion: "cpp",
  fileName: "solution.cpp",
  starter,
  comment: "//",
  startMs: 250,
  note: "It is compiled by g++ with -O2, in C++20.",
  sum: "#include <iostream>\nint main() {\n  long long a, b;\n  std::cin >> a >> b;\n  std::cout << a + b << '\\n';\n}",
  runtime: {
    find,
    call,
    install: "apt-get install g++",
    signs: { memory: /std::bad_alloc|std::bad_array_new_length|failed to map segment/ },
  },
};
