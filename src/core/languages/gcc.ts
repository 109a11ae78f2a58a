// Which files GCC needs to compile and link, as it says itself: its parts, the C library to link against, the headers.
import { existsSync, realpathSync } from "node:fs";
import { dirname, isAbsolute } from "node:path";
import { filesIn, findOnPath, linesOf, said } from "./machine.ts";

const parts = ["cc1plus", "collect2", "as", "ld", "lto-wrapper", "liblto_plugin.so"];
const started =
  "Scrt1.o crt1.o crti.o crtn.o libc.so libc.so.6 libc_nonshared.a libm.so libm.so.6 libmvec.so libmvec.so.1 libpthread.a libdl.a librt.a libutil.a " +
  "libstdc++.so libgcc_s.so libgcc_s.so.1";
const ownFiles =
  /^(?:crt.*\.o|libgcc.*|libstdc\+\+.*\.(?:a|so)|libatomic.*|include.*|cc1plus|collect2|lto-wrapper|liblto_plugin\.so)$/;
/** Of the C library and the kernel; what else lies there belongs to other packages. */
const systemHeaders = /^(?:.*\.h|bits|sys|gnu|asm|asm-generic|linux|arpa|net|netinet)$/;

/** The linker and what it links. */
export async function linkerFiles(gcc: string): Promise<string[]> {
  const files = await Promise.all(
    started.split(" ").map(async (name) => (await said(gcc, `-print-file-name=${name}`)).trim()),
  );
  const programs = await Promise.all(
    parts.map(async (name) => {
      const said1 = (await said(gcc, `-print-prog-name=${name}`)).trim();
      return isAbsolute(said1) ? said1 : (findOnPath(said1) ?? said1);
    }),
  );
  const own = dirname((await said(gcc, "-print-libgcc-file-name")).trim());
  const all = [gcc, ...programs, ...files, ...filesIn(own, ownFiles)];
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
