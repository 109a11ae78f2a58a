// How a conversation goes on after an answer without writing again what the model was shown and what it sampled.
import type { Message } from "./messages.ts";

/** What stands behind an answer's tokens when the conversation goes on. */
export interface Extension {
  /**
   * To append to what the model was shown and what it sampled: the new messages, and the beginning of the next answer. Undefined where
   * nothing can be appended: the answer has no end, or the format puts the new messages elsewhere.
   */
  tokens: number[] | undefined;
  /**
   * Why the format's own text of the whole conversation is not what stands there: it leaves out reasoning, moves its tools, ends answers
   * otherwise. Undefined: it is the same, but for blanks and the empty tags of reasoning.
   */
  rewritten: string | undefined;
}

export const rewrites = {
  unfinished: "the answer ended without its end-of-turn token",
  nothingAdded: "no message follows the answer",
  otherEnd: (sampled: string, written: string) =>
    `the answer ended with ${sampled}, and finished answers are written with ${written}`,
  reasoning: "the reasoning of an earlier answer is left out once the conversation goes on",
  text: "text of an earlier answer is left out once the conversation goes on",
  before: "what stands before the answer is written otherwise once the conversation goes on",
  moved: "the new messages are not written behind the answer",
} as const;

export const isBlank = (text: string | undefined): boolean => text === undefined || text.trim() === "";

/** A character that none of the messages has: text between two of it is nowhere else. */
export function foreignCharacter(messages: readonly Message[]): string {
  const said = JSON.stringify(messages);
  // The private-use characters before those that control tokens are spelled in.
  for (let code = 0xe000; code < 0xf5fd; code++) {
    const character = String.fromCharCode(code);
    if (!said.includes(character)) return character;
  }
  return "\u{F0000}";
}
