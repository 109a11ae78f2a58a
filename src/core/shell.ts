// Words for commands that people paste into a shell.
import { unsafe } from "./visible.ts";

/**
 * A word as a POSIX shell reads it back, quoted only where it must be. What a terminal would obey, or what turns text around, is spelled in
 * bytes: shown as it is and pasted right.
 */
export function shellWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  const quoted = `'${word.replaceAll("'", "'\\''")}'`;
  return quoted.replaceAll(unsafe, (character) => `'"$(printf '${octal(character)}')"'`);
}

const octal = (text: string) => [...Buffer.from(text)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");

/** A command line: the first words as they are (`./whet export`), the others quoted. */
export const shellCommand = (command: string, ...words: readonly string[]): string =>
  [command, ...words.map(shellWord)].join(" ");
