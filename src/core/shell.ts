// Words for commands that people paste into a shell.

/** A word as a POSIX shell reads it back, quoted only where it must be. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A command line: the first words as they are (`./whet export`), the others quoted. */
export const shellCommand = (command: string, ...words: readonly string[]): string =>
  [command, ...words.map(shellWord)].join(" ");
