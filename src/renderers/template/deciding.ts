// The part of a long conversation that decides how it goes on. A template writes one exchange like another, so that reading thousands of
// them again for each new message would say nothing new: how it begins, what was said last, and what the new message may change (the
// latest reasoning, and the latest question before which reasoning is left out) say it all.
import { isBlank } from "../extension.ts";
import type { Message } from "../messages.ts";
import { isQuery } from "../reasoning.ts";
import { withCallIds } from "./wire-messages.ts";

/** Answers at the end that are always looked at: more than any template treats in a way of their own. */
const recent = 8;

/**
 * A conversation that goes on in the same way and has two dozen exchanges at most. At each power of two of its answers it is all of it,
 * so that a template that counts is found out.
 */
export function decidingPart(messages: readonly Message[]): readonly Message[] {
  const answers = [...messages.keys()].filter((index) => messages[index]!.role === "assistant");
  const count = answers.length;
  if (count <= 2 * recent || Number.isInteger(Math.log2(count))) return messages;
  const named = withCallIds(messages);
  const exchange = (place: number) => named.slice(answers[place]!, answers[place + 1]);
  const earlier = [...answers.keys()].slice(0, -recent);
  const reasons = earlier.findLast((place) => !isBlank(named[answers[place]!]!.reasoning)) ?? -1;
  const asks = earlier.findLast((place) => exchange(place).some(isQuery)) ?? -1;
  const kept = earlier.filter((place) => place === reasons || place === asks);
  return [...named.slice(0, answers[0]!), ...kept.flatMap(exchange), ...named.slice(answers[count - recent]!)];
}
