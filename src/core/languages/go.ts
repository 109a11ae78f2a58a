import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { harnessOf, type MakeCall, reportFile, spelled, starterIn, withoutTexts } from "./call.ts";
import { type Language, megabyte, type Tools } from "./language.ts";
import { findOnPath, keptFolder, linesOf, said } from "./machine.ts";

const placeOfPackages = "/opt/packages";

/** The compiler and the linker alone: no build files, no directives for a C compiler, no downloads. */
async function find(): Promise<Tools | string> {
  const command = findOnPath("go");
  if (command === undefined) return "go";
  const [version = "", tools = ""] = linesOf(await said(command, "env", "GOVERSION", "GOTOOLDIR"));
  const packages = keptFolder(`${version}-packages`, placeOfPackages, async (folder) => {
    const format = "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}";
    const lines = linesOf(
      await said("env", "GOFLAGS=-mod=mod", "CGO_ENABLED=0", command, "list", "-export", "-f", format, "std"),
    );
    const config = lines.map((line, index) => {
      const [path = "", archive = ""] = line.split(" ");
      cpSync(archive, join(folder, `${index}.pkg`));
      return `packagefile ${path}=${placeOfPackages}/${index}.pkg`;
    });
    writeFileSync(join(folder, "importcfg"), `${config.join("\n")}\n`);
  });
  const config = ["-importcfg", "importcfg"];
  return {
    version: version.replace("go", "go "),
    files: [],
    compile: {
      files: [join(tools, "compile"), join(tools, "link"), packages.held],
      prepare: packages.prepare,
      beside: ({ at }) => ({
        importcfg: readFileSync(join(packages.folder, "importcfg"), "utf8").replaceAll(
          placeOfPackages,
          at(packages.held),
        ),
      }),
      steps: () => [
        {
          command: [join(tools, "compile"), "-p", "main", "-complete", ...config, "-o", "program.o", "solution.go"],
          output: "program.o",
        },
        { command: [join(tools, "link"), "-s", "-w", ...config, "-o", "program", "program.o"], output: "program" },
      ],
    },
    command: () => ["./program"],
    environment: { GOTRACEBACK: "single" },
    addressBytes: 2048 * megabyte,
    stackBytes: 64 * megabyte,
  };
}

const harness = harnessOf("call.go");
const harnessImports = "encoding/json io os reflect strconv strings unicode/utf8".split(" ");
/** What contest sites import for those who write only the function. */
const usual =
  "bufio bytes container/heap container/list errors fmt math math/bits math/rand os regexp slices sort strconv strings unicode".split(
    " ",
  );
const lastWord = (path: string) => path.replace(/.*\//, "");

/** Behind the program, in an init function that runs after its own; a main of the program's own is not run. */
const call: MakeCall = (source, calls, report) => {
  const plain = withoutTexts(source);
  const imports = harnessImports.map((path) => {
    const word = lastWord(path);
    return `whetstone${word[0]!.toUpperCase()}${word.slice(1)} "${path}"`;
  });
  if (!/^import\b/m.test(plain))
    imports.push(
      ...usual.filter((path) => new RegExp(`\\b${lastWord(path)}\\.\\w`).test(plain)).map((path) => `"${path}"`),
    );
  const functions = calls.map(({ name }) => {
    const own = spelled(source, name);
    const isMethod = new RegExp(`\\bfunc\\s*\\(\\s*(?:\\w+\\s+)?\\*?\\s*Solution\\s*\\)\\s*${own}\\b`).test(plain);
    return `${JSON.stringify(name)}: ${isMethod ? "new(Solution)." : ""}${own}`;
  });
  const names = calls.map(({ name }) => spelled(source, name)).join("|");
  const file =
    report === "descriptor"
      ? 'whetstoneOs.NewFile(3, "report")'
      : `whetstoneCreated(whetstoneOs.Create("${reportFile}"))`;
  return {
    source: [
      `package main; import (${imports.join("; ")}); ${source.replace(/^[ \t]*package\s+\w+[ \t]*;?/m, "")}`,
      harness,
      `func whetstoneReport() *whetstoneOs.File { return ${file} }`,
      "func whetstoneCreated(file *whetstoneOs.File, _ error) *whetstoneOs.File { return file }",
      `var whetstoneFunctions = map[string]interface{}{${functions.join(", ")}}`,
      /^func\s+main\s*\(/m.test(plain) ? "" : "func main() {}",
      "",
    ].join("\n"),
    missing: (said) => new RegExp(`^\\S+ (?:undefined: (?:${names}|Solution)$|.*\\b(?:${names}) undefined)`).test(said),
  };
};

const starter = starterIn({
  types: { bool: "bool", int: "int", long: "int64", double: "float64", string: "string" },
  list: (of) => `[]${of}`,
  map: (of) => `map[string]${of}`,
  parameter: (name, type) => `${name} ${type}`,
  definition: (name, parameters, result) => `func ${name}(${parameters}) ${result} {\n\t// YOUR CODE HERE\n}`,
});

export const go: Language = {
  title: "Go",
  tags: ["go", "golang"],
  fusion: "go",
  fileName: "solution.go",
  starter,
  comment: "//",
  startMs: 250,
  note: "It is package main, and only the standard library is there.",
  sum: 'package main\n\nimport "fmt"\n\nfunc main() {\n\tvar a, b int64\n\tfmt.Scan(&a, &b)\n\tfmt.Println(a + b)\n}',
  runtime: {
    find,
    call,
    install: "apt-get install golang, or https://go.dev/dl",
    signs: { memory: /runtime: out of memory|cannot allocate memory/ },
  },
};
