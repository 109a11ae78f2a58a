// Which tokens of a conversation to train on, where a template wrote it. A template gives one text, so the parts are found by rendering:
// an answer is what follows the prompt before it; any other message is where the text changes with its content.
import { RendererError } from "../errors.ts";
import type { Message, SupervisedExample, SupervisedOptions } from "../messages.ts";
import { checkTrainable, chooseMessages, joinRuns, nothingToTrain, warningsOf } from "../segments.ts";
import { generationEnd, generationStart, stripMarks } from "./control-text.ts";
import type { TemplateRenderer } from "./template-renderer.ts";

/** Part of a rendered text, by position. */
interface Span {
  start: number;
  end: number;
}

export function superviseTemplate(
  renderer: TemplateRenderer,
  messages: readonly Message[],
  options: SupervisedOptions,
): SupervisedExample {
  const trainOn = options.trainOn ?? "last_assistant_message";
  checkTrainable(messages, trainOn);
  const chosen = [...chooseMessages(messages, trainOn)].filter((index) => index >= 0).sort((a, b) => a - b);
  if (chosen.length === 0) throw nothingToTrain(messages, trainOn);
  const last = messages.length - 1;
  if (chosen.length === 1 && chosen[0] === last && messages[last]!.role === "assistant")
    return lastAnswer(renderer, messages, options);
  const whole = stripMarks(renderer.renderFinished(messages, options));
  const spans =
    trainOn === "all_tokens"
      ? [{ start: 0, end: whole.length }]
      : (generationSpans(renderer, messages, chosen, options) ??
        chosen.map((index) => spanOf(renderer, whole, messages, index, options)));
  const name = `The chat template of ${renderer.tokenizer.name}`;
  return { ...weighSpans(renderer, whole, spans), warnings: warningsOf(renderer, name, messages, trainOn) };
}

/** The common case: the prompt, then what the model is to write. */
function lastAnswer(
  renderer: TemplateRenderer,
  messages: readonly Message[],
  options: SupervisedOptions,
): SupervisedExample {
  const prompt = stripMarks(renderer.render(messages.slice(0, -1), options, true));
  const whole = stripMarks(renderer.renderFinished(messages, options));
  const target = whole.startsWith(prompt)
    ? whole.slice(prompt.length)
    : writtenAfter(renderer, prompt, whole, messages.at(-1)!);
  const runs = [
    { tokens: renderer.encode(prompt), trained: false },
    { tokens: renderer.encode(target, { continues: true }), trained: true },
  ];
  return { ...joinRuns(runs), warnings: [] };
}

/**
 * The answer where the template ends its prompt otherwise than it writes a finished turn: `<think>` and a newline against an empty block,
 * a block that finished turns do not show. Only blanks and tags may differ; then the turn's own text goes on after the prompt.
 */
function writtenAfter(renderer: TemplateRenderer, prompt: string, whole: string, message: Message): string {
  const { tags, tail } = renderer.reasoning;
  const both = tags ? [tags.open, tags.close] : [];
  const shared = beforeTags(
    both,
    [prompt, whole].map((text) => renderer.template.controls.unmark(text)),
    sharedStart(prompt, whole),
  );
  const extra = both.reduce(
    (text, tag) => text.replaceAll(tag, ""),
    renderer.template.controls.plain(prompt.slice(shared)),
  );
  let rest = whole.slice(shared);
  const reasoning = message.reasoning ?? "";
  // An empty block that the prompt holds already.
  if (tags && tail === "closed" && renderer.template.controls.unmark(rest).startsWith(tags.close))
    rest = rest.slice(tags.close.length);
  const closes = tags !== undefined && renderer.template.controls.unmark(rest).includes(tags.close);
  if (extra.trim() !== "" || (tail === "closed" && (closes || reasoning !== ""))) {
    throw new RendererError(
      "renderer/not-a-continuation",
      `The chat template of ${renderer.tokenizer.name} writes the last answer otherwise than its own prompt begins it, so training on it would ` +
        "teach what sampling never shows. Set thinking to what the answer was made with (off for answers without reasoning).",
    );
  }
  // Some templates drop the reasoning of a finished turn; the model wrote it all the same.
  const dropped = tail === "open" && closes && !renderer.template.controls.plain(rest).includes(reasoning);
  return dropped ? renderer.template.controls.escape(reasoning) + rest : rest;
}

/** A position that is not within a tag of any of the texts. */
function beforeTags(tags: readonly string[], texts: readonly string[], position: number): number {
  for (const tag of tags)
    for (let back = 1; back < tag.length; back++)
      if (texts.some((text) => text.startsWith(tag, position - back))) return position - back;
  return position;
}

/** Where a template says which parts the model wrote; undefined where it does not, or where other messages are asked for. */
function generationSpans(
  renderer: TemplateRenderer,
  messages: readonly Message[],
  chosen: readonly number[],
  options: SupervisedOptions,
): Span[] | undefined {
  const answers = messages.flatMap(({ role }, index) => (role === "assistant" ? [index] : []));
  if (!renderer.template.marksGeneration || chosen.some((index) => messages[index]!.role !== "assistant"))
    return undefined;
  const marked = renderer.render(messages, options, false);
  const spans: Span[] = [];
  let position = 0;
  for (const character of marked.split("")) {
    if (character === generationStart) spans.push({ start: position, end: position });
    else if (character === generationEnd && spans.length > 0) spans.at(-1)!.end = position;
    else position++;
  }
  if (spans.length !== answers.length) return undefined;
  const text = renderer.template.controls.unmark(stripMarks(marked));
  return spans
    .filter((_, index) => chosen.includes(answers[index]!))
    .map(({ start, end }) => {
      // A newline after the end of a turn is not the model's, whatever the marks say.
      const blanks = /\s*$/.exec(text.slice(start, end))![0].length;
      const ends = renderer.endOfTurn !== undefined && text.endsWith(renderer.endOfTurn, end - blanks);
      return { start, end: ends ? end - blanks : end };
    });
}

/** Where one message stands in the whole text, its end token included. */
function spanOf(
  renderer: TemplateRenderer,
  whole: string,
  messages: readonly Message[],
  index: number,
  options: SupervisedOptions,
): Span {
  const message = messages[index]!;
  const start =
    message.role === "assistant"
      ? sharedStart(whole, stripMarks(renderer.render(messages.slice(0, index), options, true)))
      : sharedStart(
          whole,
          stripMarks(renderer.render(withContent(messages, index, other(message.content)), options, false)),
        );
  const rest = whole.slice(start);
  const content = renderer.template.controls.escape(message.content.trim());
  const within = renderer.template.controls.unmark(rest).indexOf(content);
  let end = 0;
  // The first control token after the content ends the message, and belongs to it where it is an end of turn.
  for (const piece of renderer.template.controls.split(rest)) {
    const { length } = piece;
    if ("token" in piece && end >= within + content.length) {
      const ends = renderer.endOfTurn === undefined || piece.token === renderer.endOfTurn;
      if (ends && renderer.endOfTurn !== undefined) end += length;
      if (within >= 0) return { start, end: start + end };
    }
    end += length;
  }
  if (within >= 0) return { start, end: whole.length };
  throw new RendererError(
    "renderer/not-a-continuation",
    `The chat template of ${renderer.tokenizer.name} does not show message ${index} (${message.role}) as it is, so it cannot be told where to train. ` +
      "Train on the last answer only (train_on=last_assistant_message).",
  );
}

const withContent = (messages: readonly Message[], index: number, content: string) =>
  messages.map((message, position) => (position === index ? { ...message, content } : message));
/** A content whose first character is not that of the given one. */
const other = (content: string) => (content.trimStart().startsWith("X") ? "Y" : "X");

function sharedStart(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

function weighSpans(
  renderer: TemplateRenderer,
  whole: string,
  spans: readonly Span[],
): Pick<SupervisedExample, "tokens" | "weights"> {
  const run = (start: number, end: number, trained: boolean) => ({
    tokens: renderer.encode(whole.slice(start, end), { continues: start > 0 }),
    trained,
  });
  let done = 0;
  const runs = spans.flatMap(({ start, end }) => {
    const pair = [run(done, start, false), run(start, end, true)];
    done = end;
    return pair;
  });
  return joinRuns([...runs, run(done, whole.length, false)]);
}
