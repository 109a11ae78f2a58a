import type { Language } from "./language.ts";

export const python: Language = {
  fence: "python",
  fileName: "solution.py",
  command: null,
  startMs: 250,
  slowModules: ["numpy", "scipy", "pandas", "sympy", "networkx"],
  /** Those on lines with an import, by a statement or by name, and on the lines that such a line goes on in. */
  importedWords(source) {
    const lines = source.match(/^.*(?:import|\bfrom\b).*(?:\\\r?\n.*)*$/gm) ?? [];
    return new Set(lines.flatMap((line) => line.match(/\w+/g) ?? []));
  },
};
