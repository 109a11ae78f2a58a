// Rows of text with columns under one another.

/** Lines with aligned columns: numbers and other short facts to the right where `right` says so. */
export function textTable(header: readonly string[], rows: readonly (readonly string[])[], right = ""): string[] {
  const widths = header.map((_, column) =>
    Math.max(...[header, ...rows].map((row) => [...(row[column] ?? "")].length)),
  );
  return [header, ...rows].map((row) =>
    row
      .map((cell, column) => {
        const gap = " ".repeat(widths[column]! - [...cell].length);
        return right[column] === "r" ? gap + cell : cell + gap;
      })
      .join("  ")
      .trimEnd(),
  );
}
