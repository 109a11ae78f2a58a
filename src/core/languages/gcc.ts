// Which files GCC needs to compile and link, as it says itself: its parts, the C library to link against, the headers.
import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute } from "node:path";
import type { Step } from "./language.ts";
import { filesIn, findOnPath, linesOf, said } from "./machine.ts";

const parts = ["cc1plus", "as", "ld"];
const started =
  "Scrt1.o crt1.o crti.o crtn.o libc.so libc.so.6 libc_nonshared.a libm.so libm.so.6 libmvec.so libmvec.so.1 libpthread.a libdl.a librt.a libutil.a " +
  "libstdc++.so libgcc_s.so libgcc_s.so.1";
const ownFiles = /^(?:crt.*\.o|libgcc.*|libstdc\+\+.*\.(?:a|so)|libatomic.*|include.*)$/;
/** Of the C library and the kernel; what else lies there belongs to other packages. */
const systemHeaders = /^(?:.*\.h|bits|sys|gnu|asm|asm-generic|linux|arpa|net|netinet)$/;

const argument = /"((?:[^"\\]|\\.)*)"|(\S+)/g;

/**
 * What a command of GCC would start, as it says itself: the compiler, the assembler, the linker, with files of these names between them. Nothing is
 * linked that would have to be compiled then.
 */
export async function stepsOf(gcc: string, args: readonly string[]): Promise<Step[]> {
  const lines = (await said(gcc, "-###", ...args)).split("\n").filter((line) => line.startsWith(" "));
  return Promise.all(
    lines.map(async (line) => {
      const words = [...line.matchAll(argument)].map(
        ([, quoted, plain]) => plain ?? quoted!.replaceAll(/\\(.)/g, "$1"),
      );
      const name = basename(words[0]!) === "collect2" ? "ld" : words[0]!;
      const plugin = words.indexOf("-plugin");
      const kept = words
        .filter((_, index) => index > 0 && !(plugin >= 0 && (index === plugin || index === plugin + 1)))
        .filter((word) => !word.startsWith("-plugin-opt="))
        .map((word) => word.replace(/^.*\/cc\w+\.([so])$/, "solution.$1"));
      return { command: [await programOf(gcc, name), ...kept], output: kept[kept.indexOf("-o") + 1]! };
    }),
  );
}

async function programOf(gcc: string, name: string): Promise<string> {
  const found = isAbsolute(name) ? name : (await said(gcc, `-print-prog-name=${name}`)).trim();
  return isAbsolute(found) ? found : (findOnPath(found) ?? found);
}

/** The linker and what it links. */
export async function linkerFiles(gcc: string): Promise<string[]> {
  const files = await Promise.all(
    started.split(" ").map(async (name) => (await said(gcc, `-print-file-name=${name}`)).trim()),
  );
  const programs = await Promise.all(parts.map((name) => programOf(gcc, name)));
  const own = dirname((await said(gcc, "-print-libgcc-file-name")).trim());
  const all = [...programs, ...files, ...filesIn(own, ownFiles)];
  return [...new Set(all)].filter((path) => isAbsolute(path) && existsSync(path));
}

/** The folders where it looks for headers. */
export async function headerFiles(gxx: string): Promise<string[]> {
  const text = await said(gxx, "-E", "-v", "-x", "c++", "/dev/null");
  const folders = linesOf(
    /search starts here:\n([\s\S]*?)End of search/.exec(text.replace(/^[\s\S]*#include </m, ""))?.[1] ?? "",
  );
  return folders
    .map((folder) => folder.trim())
    .filter((folder) => existsSync(folder))
    .flatMap((folder) =>
      realpathSync(folder).startsWith("/usr/include") && !/\+\+/.test(folder)
        ? filesIn(folder, systemHeaders)
        : [folder],
    );
}
