import type { Language } from "./language.ts";

export const python: Language = {
  title: "Python",
  tags: ["python", "python3", "py", "py3"],
  fusion: "python",
  fileName: "solution.py",
  comment: "#",
  startMs: 250,
  sum: "print(sum(map(int, input().split())))",
  runtime: null,
  packages: {
    slow: ["numpy", "scipy", "pandas", "sympy", "networkx"],
    /** Those on lines with an import, by a statement or by name, and on the lines that such a line goes on in. */
    importedWords(source) {
      const lines = source.match(/^.*(?:import|\bfrom\b).*(?:\\\r?\n.*)*$/gm) ?? [];
      return new Set(lines.flatMap((line) => line.match(/\w+/g) ?? []));
    },
  },
};
