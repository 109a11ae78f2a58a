import { SourceMap } from "node:module";
import { findEsbuild, installEsbuild } from "../esbuild.mjs";
import { starterIn } from "./call.ts";
import { esbuild } from "./esbuild.ts";
import { javascript, nodeRuntime, nodeTools } from "./javascript.ts";
import { type Language, ProgramError, type Translated } from "./language.ts";
import { findCheck } from "./tsc.ts";

const flags = [
  ...["--loader=ts", "--platform=node", `--target=node${process.versions.node}`, "--sourcefile=solution.ts"],
  ...["--sourcemap=inline", "--sources-content=false", "--log-limit=5", "--color=false"],
];

const mapBegins = "//# sourceMappingURL=data:application/json;base64,";
/** That of a program of some 50,000 characters; reading it takes 20 ms. */
const longestMap = 256 * 1024;

const transform = (source: string, format: "cjs" | "esm") =>
  esbuild(source, [...flags, `--format=${format}`]).catch((error: unknown) => {
    throw error instanceof ProgramError ? new ProgramError(placesFirst(error.message)) : error;
  });

/** Types go; enums and parameter properties become what they stand for. CommonJS, as tsc makes it for Node, unless only a module can do it. */
async function translate(source: string): Promise<Translated> {
  const made = await transform(source, "cjs").catch((error: unknown) => {
    if (error instanceof ProgramError && /Top-level await/.test(error.message)) return undefined;
    throw error;
  });
  const isModule = made?.warnings.includes("[empty-import-meta]") ?? true;
  const { code } = isModule ? await transform(source, "esm") : made!;
  const cut = code.lastIndexOf(mapBegins);
  return { source: code.slice(0, cut), inSource: placesIn(code.slice(cut + mapBegins.length)) };
}

/** What esbuild found, as compilers say it: the place first, with columns from 1. */
const placesFirst = (found: string): string =>
  found
    .replace(/\n+\d+ (?:errors?|warnings?)[\s\S]*$/, "")
    .replaceAll(/^( +solution\.ts:\d+):(\d+):$/gm, (_, place: string, column) => `${place}:${Number(column) + 1}:`)
    .replaceAll(/^\S+ \[ERROR\] (.*)\n\n +(solution\.ts:\d+:\d+:)$/gm, "$2 $1");

/** Puts the places of the source into a text. The map is read in our process, so a large one is not: then the places stay those of the translation. */
function placesIn(encoded: string): Translated["inSource"] {
  let map: SourceMap | undefined;
  return (text) => {
    if (encoded.length > longestMap || !/(?:solution|program)\.js/.test(text)) return text;
    map ??= new SourceMap(JSON.parse(Buffer.from(encoded, "base64").toString("utf8")));
    const known = map;
    return text.replaceAll(
      /(?:solution|program)\.js:(\d+)(:(\d+))?/g,
      (place, line: string, _, column: string | undefined) => {
        const { originalLine, originalColumn } = known.findEntry(Number(line) - 1, Number(column ?? 1) - 1) as {
          originalLine?: number;
          originalColumn?: number;
        };
        if (originalLine === undefined) return place;
        return `solution.ts:${originalLine + 1}${column === undefined ? "" : `:${originalColumn! + 1}`}`;
      },
    );
  };
}

const starter = starterIn({
  types: { bool: "boolean", int: "number", long: "number", double: "number", string: "string" },
  list: (of) => `${of}[]`,
  map: (of) => `Record<string, ${of}>`,
  parameter: (name, type) => `${name}: ${type}`,
  definition: (name, parameters, result) => `function ${name}(${parameters}): ${result} {\n  // YOUR CODE HERE\n}`,
});

export const typescript: Language = {
  title: "TypeScript",
  tags: ["typescript", "ts", "mts", "cts", "tsx"],
  fusion: "typescript",
  fileName: "solution.ts",
  starter,
  comment: "//",
  startMs: javascript.startMs,
  note: "It is run by Node.",
  sum: 'import { readFileSync } from "fs";\nconst [a, b]: bigint[] = readFileSync(0, "utf8").split(" ").map(BigInt);\nconsole.log(String(a! + b!));',
  runtime: {
    ...nodeRuntime,
    install: `${installEsbuild}, for esbuild, which takes the types away`,
    find: async () =>
      findEsbuild()
        ? { ...nodeTools("solution.js"), check: findCheck("solution.ts") }
        : `@esbuild/${process.platform}-${process.arch}`,
    translate,
  },
};
