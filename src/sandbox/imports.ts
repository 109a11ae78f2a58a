// Which of the packages that are installed a program could import: its files are copied where programs are that mention one.

/** Those that stand on a line that imports something, by a statement or by name. */
export function mentioned(packages: readonly string[], texts: readonly string[]): string[] {
  if (packages.length === 0) return [];
  const words = new Set(texts.flatMap((text) => [...importedWords(text)]));
  return packages.filter((name) => words.has(name));
}

/** The words on lines on which something is imported, and on those that such a statement goes on in. */
export function importedWords(text: string): Set<string> {
  const lines = text.match(/^.*(?:import|\bfrom\b).*(?:\\\r?\n.*)*$/gm) ?? [];
  return new Set(lines.flatMap((line) => line.match(/\w+/g) ?? []));
}
