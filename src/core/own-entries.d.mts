/** Every entry with code, by the name it is imported by, with the file URL of its source; in the package, of where that would be. */
export function sourceEntries(): Record<string, string>;
