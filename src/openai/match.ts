// Finds the turn that a client's conversation goes on from. Ids of calls tell where it may be; its messages tell whether it is. What is
// left behind that turn is new to the model; where no turn is found, all of it is.
import type { Message } from "../renderers/index.ts";
import { isSame, placeOfCall } from "./conversation.ts";

/** A turn, and everything that was said up to it, its own answer last and as it was delivered. */
export interface KnownTurn {
  index: number;
  messages: readonly Message[];
}

export interface Match<Node extends KnownTurn> {
  /** Undefined: the conversation begins anew. */
  from: Node | undefined;
  added: readonly Message[];
  /** Why it begins anew although answers of the model are in it. */
  changed: string | undefined;
}

/** `used` says how many conversations go on from a turn already: of two that say the same, a fresh one is taken. */
export function match<Node extends KnownTurn>(
  nodes: readonly Node[],
  messages: readonly Message[],
  used: (node: Node) => number = () => 0,
): Match<Node> {
  const named = new Set(
    messages.flatMap(({ toolCalls = [] }) => toolCalls.flatMap(({ id }) => placeOfCall(id)?.turn ?? [])),
  );
  const rank = (node: Node) => [Number(named.has(node.index)), -used(node), -node.index];
  let from: Node | undefined;
  // The longest beginning: of a conversation of a thousand turns the first that is looked at.
  for (const node of nodes.toSorted((a, b) => b.messages.length - a.messages.length)) {
    if (from && node.messages.length < from.messages.length) break;
    if (isBeginning(node.messages, messages) && (!from || compare(rank(node), rank(from)) > 0)) from = node;
  }
  if (from) return { from, added: messages.slice(from.messages.length), changed: undefined };
  return { from, added: messages, changed: changeOf(nodes, messages) };
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : a[at]! - b[at]!;
}

const isBeginning = (ours: readonly Message[], theirs: readonly Message[]): boolean =>
  ours.length <= theirs.length && ours.every((message, index) => isSame(message, theirs[index]!));

/** The turn whose answer a message is, whatever was said before it. */
export function turnOf<Node extends KnownTurn>(nodes: readonly Node[], message: Message): Node | undefined {
  if (message.role !== "assistant") return undefined;
  const named = placeOfCall(message.toolCalls?.[0]?.id)?.turn;
  const same = nodes.filter((node) => isSame(node.messages.at(-1)!, message));
  return same.find(({ index }) => index === named) ?? same[0];
}

/** Why a conversation begins anew whose system message is not the one that it had. */
export const systemChanged = "the system message is another";

/** What is otherwise before the last answer that is known. */
function changeOf(nodes: readonly KnownTurn[], messages: readonly Message[]): string | undefined {
  for (let last = messages.length - 1; last >= 0; last--) {
    const node = turnOf(nodes, messages[last]!);
    if (!node) continue;
    const at = node.messages.findIndex((ours, index) => !messages[index] || !isSame(ours, messages[index]!));
    const message = node.messages[at];
    if (!message || at > last) return "messages before an answer were left out or added";
    return message.role === "system" ? systemChanged : `an earlier ${message.role} message was changed`;
  }
  return undefined;
}
