import { createRequire, SourceMap } from "node:module";
import { javascript, nodeRuntime, nodeTools } from "./javascript.ts";
import { type Language, ProgramError, type Translated } from "./language.ts";

type Esbuild = typeof import("esbuild");

/** Nobody's program takes as long to translate. */
const patienceMs = 10_000;

let loaded: Esbuild | undefined;

/** A process of its own, written in Go; it does not hold this one up when it ends. */
function esbuild(): Esbuild | undefined {
  try {
    loaded ??= createRequire(import.meta.url)("esbuild") as Esbuild;
  } catch {
    // It is not installed.
  }
  return loaded;
}

type Format = "cjs" | "esm";

/** One translation; rejects with what esbuild found, or with anything when its process ended. */
async function transform(source: string, format: Format) {
  const { transform, stop } = esbuild()!;
  let late: ProgramError | undefined;
  const timer = setTimeout(() => {
    late = new ProgramError(`translating took more than ${patienceMs / 1000} s`);
    void stop();
  }, patienceMs);
  try {
    return await transform(source, {
      ...{ loader: "ts", format, platform: "node", target: `node${process.versions.node}` },
      ...{ sourcefile: "solution.ts", sourcemap: "external", sourcesContent: false, logLevel: "silent" },
    });
  } catch (error) {
    const found = messageOf(error);
    throw late ?? (found === undefined ? error : new ProgramError(found));
  } finally {
    clearTimeout(timer);
  }
}

/** The same; a program that ends the translator, which another one does not, has itself to blame. */
async function survived(source: string, format: Format): ReturnType<typeof transform> {
  for (let tries = 1; ; tries++) {
    try {
      return await transform(source, format);
    } catch (error) {
      if (error instanceof ProgramError) throw error;
      await esbuild()!.stop();
      await transform("", format); // or nothing can be said of the program
      if (tries === 3) throw new ProgramError("the translator does not survive it");
    }
  }
}

/** Types go; enums and parameter properties become what they stand for. CommonJS, as tsc makes it for Node, unless only a module can do it. */
async function translate(source: string): Promise<Translated> {
  const made = await survived(source, "cjs").catch((error: unknown) => {
    if (error instanceof ProgramError && /Top-level await/.test(error.message)) return undefined;
    throw error;
  });
  const isModule = !made || made.warnings.some(({ id }) => id === "empty-import-meta");
  const { code, map } = isModule ? await survived(source, "esm") : made;
  return { source: code, inSource: (text) => withPlaces(text, map) };
}

/** What esbuild found, as compilers say it; undefined where it is something else that went wrong. */
function messageOf(error: unknown): string | undefined {
  const { errors } = error as { errors?: { text: string; location: { line: number; column: number } | null }[] };
  return errors
    ?.map(({ text, location }) => `solution.ts:${location ? `${location.line}:${location.column + 1}` : ""}: ${text}`)
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
  sum: 'import { readFileSync } from "fs";\nconst [a, b]: bigint[] = readFileSync(0, "utf8").split(" ").map(BigInt);\nconsole.log(String(a! + b!));',
  runtime: {
    ...nodeRuntime,
    install: "npm install esbuild, which takes the types away",
    find: async () => (esbuild() ? nodeTools("solution.js") : "the package esbuild"),
    translate,
  },
};
