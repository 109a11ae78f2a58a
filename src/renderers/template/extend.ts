// What a template writes behind an answer when the conversation goes on, and whether it then still shows what the model was shown and
// what it sampled. The conversation is rendered with marks in place of the answers' texts: a mark that is gone is text that the template
// leaves out, and what follows the end of the answer before the first new message is what goes on from it.
import { type Extension, foreignCharacter, isBlank, rewrites } from "../extension.ts";
import type { Message, RenderOptions } from "../messages.ts";
import type { TemplateRenderer } from "./template-renderer.ts";

interface Marks {
  reasoning(index: number): string;
  text(index: number): string;
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
  const marks: Marks = {
    reasoning: (index) => mark(`r${index}`),
    text: (index) => mark(`t${index}`),
    added: mark("a"),
  };
  const answered = withMarks(messages, marks);
  const shown = renderer.render(answered.slice(0, -1), options, true);
  const goesOn = renderer.render([...answered, markedMiddle(added[0]!, marks.added), ...added.slice(1)], options, true);
  const position = goesOn.indexOf(marks.added);
  const ends = stopsOf(renderer, position < 0 ? "" : goesOn.slice(0, position));
  const end = ends.at(-1);
  if (end === undefined || end.start < lastMark(goesOn, messages, marks))
    return { tokens: undefined, rewritten: rewrites.moved };
  const whole = renderer.render([...messages, ...added], options, true);
  const same = stopsOf(renderer, whole)[ends.length - 1];
  if (same === undefined) return { tokens: undefined, rewritten: rewrites.moved };
  const written = renderer.tokenizer.tokenId(same.token);
  const tokens = renderer.encode(whole.slice(same.start), { continues: true }).slice(1);
  const otherEnd = () => rewrites.otherEnd(renderer.tokenizer.decode([last]), same.token);
  return {
    tokens,
    rewritten:
      leftOut(renderer, { shown, goesOn, whole }, messages, marks) ?? (written === last ? undefined : otherEnd()),
  };
}

/** The answers' texts as marks; blank ones stay, as a template may ask whether there is any. */
function withMarks(messages: readonly Message[], marks: Marks): Message[] {
  return messages.map((message, index) => {
    if (message.role !== "assistant") return message;
    const content = isBlank(message.content) ? message.content : marks.text(index);
    return { ...message, content, ...(!isBlank(message.reasoning) && { reasoning: marks.reasoning(index) }) };
  });
}

/** Within the text: templates look at how a message begins and ends. */
function markedMiddle(message: Message, mark: string): Message {
  const middle = Math.floor(message.content.length / 2);
  return { ...message, content: message.content.slice(0, middle) + mark + message.content.slice(middle) };
}

/** The control tokens of a rendered text at which sampling stops. */
function stopsOf(renderer: TemplateRenderer, rendered: string): { token: string; start: number }[] {
  let position = 0;
  const found: { token: string; start: number }[] = [];
  for (const piece of renderer.template.controls.split(rendered)) {
    if ("token" in piece && renderer.stop.includes(renderer.tokenizer.tokenId(piece.token)!))
      found.push({ token: piece.token, start: position });
    position += piece.length;
  }
  return found;
}

const lastMark = (rendered: string, messages: readonly Message[], marks: Marks): number =>
  Math.max(rendered.indexOf(marks.reasoning(messages.length - 1)), rendered.indexOf(marks.text(messages.length - 1)));

/** What of an earlier text is gone, in words; undefined where it is all there. */
function leftOut(
  renderer: TemplateRenderer,
  { shown, goesOn, whole }: { shown: string; goesOn: string; whole: string },
  messages: readonly Message[],
  marks: Marks,
): string | undefined {
  const last = messages.length - 1;
  for (const [index, message] of messages.entries()) {
    if (message.role !== "assistant") continue;
    const gone = (mark: string, blank: boolean) =>
      !blank && !goesOn.includes(mark) && (index === last || shown.includes(mark));
    if (gone(marks.reasoning(index), isBlank(message.reasoning))) return rewrites.reasoning;
    if (gone(marks.text(index), isBlank(message.content))) return rewrites.text;
  }
  // Some templates cut an answer at what looks like the end of reasoning.
  const said = renderer.template.controls.escape(messages[last]!.content.trim());
  if (!renderer.template.controls.unmark(whole).includes(said)) return rewrites.text;
  const withoutScaffolding = (text: string) => scaffoldless(renderer, renderer.template.controls.unmark(text));
  return withoutScaffolding(goesOn).startsWith(withoutScaffolding(shown)) ? undefined : rewrites.before;
}

/** The text without blanks and tags of reasoning, which templates write for finished answers otherwise than for their prompts. */
export function scaffoldless(renderer: TemplateRenderer, text: string): string {
  const { tags } = renderer.reasoning;
  const bare = tags ? text.replaceAll(tags.open, "").replaceAll(tags.open.trim(), "").replaceAll(tags.close, "") : text;
  return bare.replaceAll(/\s+/g, "");
}
