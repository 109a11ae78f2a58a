// Finds the turn that a client's conversation goes on from. Ids of calls say where it may be; what was said says whether it is. What is
// left behind that turn is new to the model; where no turn is found, all of it is.
import type { Message } from "../renderers/index.ts";
import { isSame, placeOfCall } from "./conversation.ts";

/** A turn, and everything that was said up to it, its own answer last and as it was delivered. */
export interface Spoken {
  index: number;
  said: readonly Message[];
}

export interface Match<Node extends Spoken> {
  /** Undefined: the conversation begins anew. */
  from: Node | undefined;
  added: readonly Message[];
  /** Why it begins anew although answers of the model are in it. */
  changed: string | undefined;
}

/** `used` says how many conversations go on from a turn already: of two that say the same, a fresh one is taken. */
export function match<Node extends Spoken>(
  nodes: readonly Node[],
  said: readonly Message[],
  used: (node: Node) => number = () => 0,
): Match<Node> {
  const named = new Set(
    said.flatMap(({ toolCalls = [] }) => toolCalls.flatMap(({ id }) => placeOfCall(id)?.turn ?? [])),
  );
  const rank = (node: Node) => [Number(named.has(node.index)), -used(node), -node.index];
  let from: Node | undefined;
  // The longest beginning: of a conversation of a thousand turns the first that is looked at.
  for (const node of nodes.toSorted((a, b) => b.said.length - a.said.length)) {
    if (from && node.said.length < from.said.length) break;
    if (isBeginning(node.said, said) && (!from || compare(rank(node), rank(from)) > 0)) from = node;
  }
  if (from) return { from, added: said.slice(from.said.length), changed: undefined };
  return { from, added: said, changed: changeOf(nodes, said) };
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : a[at]! - b[at]!;
}

const isBeginning = (ours: readonly Message[], theirs: readonly Message[]): boolean =>
  ours.length <= theirs.length && ours.every((message, index) => isSame(message, theirs[index]!));

/** The turn whose answer a message is, whatever was said before it. */
export function turnOf<Node extends Spoken>(nodes: readonly Node[], message: Message): Node | undefined {
  if (message.role !== "assistant") return undefined;
  const named = placeOfCall(message.toolCalls?.[0]?.id)?.turn;
  const same = nodes.filter((node) => isSame(node.said.at(-1)!, message));
  return same.find(({ index }) => index === named) ?? same[0];
}

/** Why a conversation begins anew whose system message is not the one that it had. */
export const systemChanged = "the system message is another";

/** What is otherwise before the last answer that is known. */
function changeOf(nodes: readonly Spoken[], said: readonly Message[]): string | undefined {
  for (let last = said.length - 1; last >= 0; last--) {
    const node = turnOf(nodes, said[last]!);
    if (!node) continue;
    const at = node.said.findIndex((message, index) => !said[index] || !isSame(message, said[index]!));
    const message = node.said[at];
    if (!message || at > last) return "messages before an answer were left out or added";
    return message.role === "system" ? systemChanged : `an earlier ${message.role} message was changed`;
  }
  return undefined;
}
