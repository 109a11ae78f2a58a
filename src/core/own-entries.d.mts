/** The file URL of the source behind one of the package's entries; undefined for every other specifier. */
export function sourceOfEntry(specifier: string): string | undefined;

/** Every entry with code, by the name it is imported by, with the file URL of its source. */
export function sourceEntries(): Record<string, string>;
