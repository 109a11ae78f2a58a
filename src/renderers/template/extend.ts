// What a template writes behind an answer when the conversation goes on, and whether it then still shows what the model was shown and
// what it sampled. The conversation is rendered with marks in place of the answers' texts: a mark that is gone is text that the template
// leaves out, and what follows the end of the answer before the first new message is what goes on from it.
import { type Extension, foreignCharacter, isBlank, rewrites } from "../extension.ts";
import { contentOf, type Message, type RenderOptions } from "../messages.ts";
import type { TemplateRenderer } from "./template-renderer.ts";

interface Marks {
  /** What stands for an answer's reasoning or text: a mark for each part of it that is not blank, between the tags of reasoning. */
  part(name: "r" | "t", index: number, text: string): { text: string; marks: readonly string[] };
  added: string;
}

export function extendTemplate(
  renderer: TemplateRenderer,
  messages: readonly Message[],
  answer: ArrayLike<number>,
  added: readonly Message[],
  options: RenderOptions,
): Extension {
  const last = answer[answer.length - 1];
  if (last === undefined || !renderer.stop.includes(last)) return { tokens: undefined, rewritten: rewrites.unfinished };
  if (added.length === 0) return { tokens: undefined, rewritten: rewrites.nothingAdded };
  const character = foreignCharacter([...messages, ...added]);
  const mark = (name: string) => `${character}${name}${character}`;
  const { tags } = renderer.reasoning;
  // Some templates cut an answer at what looks like reasoning in its text.
  const cuts = tags ? new RegExp(`(${[tags.open.trim(), tags.close].map(literally).join("|")})`) : undefined;
  const marks: Marks = {
    part: (name, index, text) => {
      const parts = (cuts ? text.split(cuts) : [text]).map((part, place) =>
        place % 2 === 1 || isBlank(part) ? part : mark(`${name}${index}.${place}`),
      );
      return { text: parts.join(""), marks: parts.filter((part) => part.startsWith(character)) };
    },
    added: mark("a"),
  };
  const answered = withMarks(messages, marks);
  const shown = renderer.render(answered.slice(0, -1), options, true);
  const goesOn = renderer.render([...answered, markedMiddle(added[0]!, marks.added), ...added.slice(1)], options, true);
  const position = goesOn.indexOf(marks.added);
  const controls = controlsOf(renderer, position < 0 ? "" : goesOn.slice(0, position));
  const behind = controls.filter(({ start }) => start > lastMark(goesOn, messages, marks));
  // Finished answers may be written with an end at which no model stops.
  const end = behind.findLast(({ id }) => renderer.stop.includes(id)) ?? behind[0];
  const among = (all: readonly Control[]) => all.filter(({ id }) => id === end?.id);
  const whole = renderer.render([...messages, ...added], options, true);
  const same = end && among(controlsOf(renderer, whole))[among(controls).indexOf(end)];
  if (same === undefined) return { tokens: undefined, rewritten: rewrites.moved };
  const tokens = renderer.encode(whole.slice(same.start), { continues: true }).slice(1);
  const word = (id: number) => renderer.tokenizer.decode([id]);
  const otherEnd = same.id === last ? undefined : rewrites.otherEnd(word(last), word(same.id));
  return { tokens, rewritten: leftOut(renderer, { shown, goesOn }, messages, marks) ?? otherEnd };
}

/** The answers' texts as marks; what is blank stays, as a template may ask whether there is any. */
function withMarks(messages: readonly Message[], marks: Marks): Message[] {
  return messages.map((message, index) => {
    if (message.role !== "assistant") return message;
    const { reasoning, unparsedToolCalls: _, ...rest } = message;
    const thought = reasoning === undefined ? {} : { reasoning: marks.part("r", index, reasoning).text };
    return { ...rest, content: marks.part("t", index, contentOf(message)).text, ...thought };
  });
}

/** Within the text: templates look at how a message begins and ends. */
function markedMiddle(message: Message, mark: string): Message {
  const middle = Math.floor(message.content.length / 2);
  return { ...message, content: message.content.slice(0, middle) + mark + message.content.slice(middle) };
}

const literally = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

interface Control {
  id: number;
  start: number;
}

/** The control tokens of a rendered text. */
function controlsOf(renderer: TemplateRenderer, rendered: string): Control[] {
  let position = 0;
  const found: Control[] = [];
  for (const piece of renderer.template.controls.split(rendered)) {
    if ("token" in piece) found.push({ id: renderer.tokenizer.tokenId(piece.token)!, start: position });
    position += piece.length;
  }
  return found;
}

/** The marks of an answer. */
const marksOf = (message: Message, index: number, marks: Marks) => ({
  reasoning: marks.part("r", index, message.reasoning ?? "").marks,
  text: marks.part("t", index, contentOf(message)).marks,
});

function lastMark(rendered: string, messages: readonly Message[], marks: Marks): number {
  const { reasoning, text } = marksOf(messages.at(-1)!, messages.length - 1, marks);
  return Math.max(-1, ...[...reasoning, ...text].map((mark) => rendered.indexOf(mark)));
}

/** What of an earlier text is gone, in words; undefined where it is all there. */
function leftOut(
  renderer: TemplateRenderer,
  { shown, goesOn }: { shown: string; goesOn: string },
  messages: readonly Message[],
  marks: Marks,
): string | undefined {
  const last = messages.length - 1;
  for (const [index, message] of messages.entries()) {
    if (message.role !== "assistant") continue;
    const { reasoning, text } = marksOf(message, index, marks);
    const isGone = (mark: string) => !goesOn.includes(mark) && (index === last || shown.includes(mark));
    if (reasoning.some(isGone)) return rewrites.reasoning;
    if (text.some(isGone)) return rewrites.text;
  }
  const withoutScaffolding = (text: string) => scaffoldless(renderer, renderer.template.controls.unmark(text));
  return withoutScaffolding(goesOn).startsWith(withoutScaffolding(shown)) ? undefined : rewrites.before;
}

/** The text without blanks and tags of reasoning, which templates write for finished answers otherwise than for their prompts. */
export function scaffoldless(renderer: TemplateRenderer, text: string): string {
  const { tags } = renderer.reasoning;
  const bare = tags ? text.replaceAll(tags.open, "").replaceAll(tags.open.trim(), "").replaceAll(tags.close, "") : text;
  return bare.replaceAll(/\s+/g, "");
}
