import { SourceMap } from "node:module";
import { javascript, nodeRuntime, nodeTools } from "./javascript.ts";
import { type Language, ProgramError, type Translated } from "./language.ts";

type Esbuild = typeof import("esbuild");

/** The translator is a process of its own, written in Go; it lives as long as this one and does not hold it up. */
let loading: Promise<Esbuild | undefined> | undefined;

async function esbuild(): Promise<Esbuild | undefined> {
  loading ??= import("esbuild").then(
    (module) => module.default ?? module,
    () => undefined,
  );
  return loading;
}

/** Types go; enums and parameter properties become what they stand for. CommonJS, as tsc makes it for Node, unless only a module can do it. */
async function translate(source: string): Promise<Translated> {
  const { transform } = (await esbuild())!;
  const as = (format: "cjs" | "esm") =>
    transform(source, {
      ...{ loader: "ts", format, platform: "node", target: `node${process.versions.node}` },
      ...{ sourcefile: "solution.ts", sourcemap: "external", sourcesContent: false, logLevel: "silent" },
    });
  try {
    const made = await as("cjs").catch((error: unknown) => {
      if (/await/.test(String(error))) return undefined;
      throw error;
    });
    const isModule = !made || made.warnings.some(({ id }) => id === "empty-import-meta");
    const { code, map } = isModule ? await as("esm") : made;
    return { source: code, inSource: (text) => withPlaces(text, map) };
  } catch (error) {
    throw new ProgramError(messageOf(error), { cause: error });
  }
}

/** What esbuild found, as compilers say it. */
function messageOf(error: unknown): string {
  const { errors } = error as { errors?: { text: string; location: { line: number; column: number } | null }[] };
  if (!errors?.length) return String(error);
  return errors
    .map(({ text, location }) => `solution.ts:${location ? `${location.line}:${location.column + 1}` : ""}: ${text}`)
    .join("\n");
}

function withPlaces(text: string, json: string): string {
  if (!/solution\.js/.test(text)) return text;
  const map = new SourceMap(JSON.parse(json));
  return text.replaceAll(/solution\.js:(\d+)(:(\d+))?/g, (place, line: string, _, column: string | undefined) => {
    const { originalLine, originalColumn } = map.findEntry(Number(line) - 1, Number(column ?? 1) - 1) as {
      originalLine?: number;
      originalColumn?: number;
    };
    if (originalLine === undefined) return place;
    return `solution.ts:${originalLine + 1}${column === undefined ? "" : `:${originalColumn! + 1}`}`;
  });
}

export const typescript: Language = {
  title: "TypeScript",
  tags: ["typescript", "ts", "mts", "cts", "tsx"],
  fusion: "typescript",
  fileName: "solution.ts",
  comment: "//",
  startMs: javascript.startMs,
  note: "It is run by Node; types are not checked.",
  sum: 'import { readFileSync } from "fs";\nconst [a, b]: number[] = readFileSync(0, "utf8").split(" ").map(Number);\nconsole.log(a! + b!);',
  runtime: {
    ...nodeRuntime,
    install: "npm install esbuild, which takes the types away",
    find: async () => ((await esbuild()) ? nodeTools("solution.js") : "the package esbuild"),
    translate,
  },
};
