// Which tokens of a conversation to train on, where a template wrote it. A template gives one text, so the parts are found by rendering:
// an answer is what follows the prompt before it; any other message is where the text changes with its content.
import { RendererError } from "../errors.ts";
import type { Message, SupervisedExample, SupervisedOptions } from "../messages.ts";
import { checkTrainable, chooseMessages, nothingToTrain } from "../segments.ts";
import { generationEnd, generationStart } from "./control-text.ts";
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
  const marked = withoutTail(renderer, renderer.render(messages, options, false));
  const whole = stripMarks(marked);
  const spans =
    trainOn === "all_tokens"
      ? [{ start: 0, end: whole.length }]
      : (generationSpans(marked, messages, chosen) ??
        chosen.map((index) => spanOf(renderer, whole, messages, index, options)));
  const warnings: string[] = [];
  const answers = chosen.filter((index) => messages[index]!.role === "assistant").length;
  if (trainOn === "all_assistant_messages" && !renderer.hasExtensionProperty && answers > 1) {
    warnings.push(
      `The chat template of ${renderer.tokenizer.name} rewrites earlier turns, so training on all ${answers} answers at once shows the ` +
        "model turns it would never see when sampling. Make one example per answer.",
    );
  }
  return { ...weighSpans(renderer, whole, spans), warnings };
}

/** The common case: the prompt, then what the model is to write. */
function lastAnswer(
  renderer: TemplateRenderer,
  messages: readonly Message[],
  options: SupervisedOptions,
): SupervisedExample {
  const prompt = stripMarks(renderer.render(messages.slice(0, -1), options, true));
  const whole = stripMarks(withoutTail(renderer, renderer.render(messages, options, false)));
  const message = messages.at(-1)!;
  if (!whole.startsWith(prompt)) {
    throw new RendererError(
      "renderer/not-a-continuation",
      `The chat template of ${renderer.tokenizer.name} writes the last answer${message.reasoning ? ", which has reasoning," : ""} otherwise than its own ` +
        "prompt begins it, so training on it would teach what sampling never shows. Set thinking to what the answer was made with " +
        "(off for answers without reasoning), or leave the reasoning out.",
    );
  }
  const target = renderer.encode(whole.slice(prompt.length), { continues: true });
  const head = renderer.encode(prompt);
  return {
    tokens: [...head, ...target],
    weights: [...head.map(() => 0), ...target.map(() => 1)],
    warnings: [],
  };
}

/** Without what follows the last answer's end: a newline, or the end of the whole text, which no model writes. */
function withoutTail(renderer: TemplateRenderer, rendered: string): string {
  const { endOfTurn } = renderer;
  if (endOfTurn === undefined) return rendered;
  const pieces = renderer.split(rendered);
  const position = pieces.findLastIndex((piece) => "token" in piece && piece.token === endOfTurn);
  const rest = pieces.slice(position + 1);
  const isTail = rest.every((piece) =>
    "token" in piece ? renderer.tokenizer.specialTokens["eos_token"] === piece.token : piece.text.trim() === "",
  );
  if (position < 0 || !isTail) return rendered;
  return rendered.slice(0, rendered.length - rest.reduce((sum, { length }) => sum + length, 0));
}

const marks = /[\uF5FE\uF5FF]/g;
const stripMarks = (text: string) => text.replaceAll(marks, "");

/** Where a template says which parts the model wrote; undefined where it does not, or where other messages are asked for. */
function generationSpans(marked: string, messages: readonly Message[], chosen: readonly number[]): Span[] | undefined {
  const spans: Span[] = [];
  let position = 0;
  for (const character of marked.split("")) {
    if (character === generationStart) spans.push({ start: position, end: position });
    else if (character === generationEnd && spans.length > 0) spans.at(-1)!.end = position;
    else position++;
  }
  const answers = messages.flatMap(({ role }, index) => (role === "assistant" ? [index] : []));
  if (spans.length !== answers.length || chosen.some((index) => messages[index]!.role !== "assistant"))
    return undefined;
  return spans.filter((_, index) => chosen.includes(answers[index]!));
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
  const content = renderer.escape(message.content.trim());
  const within = renderer.unmark(rest).indexOf(content);
  let end = 0;
  // The first control token after the content ends the message, and belongs to it where it is an end of turn.
  for (const piece of renderer.split(rest)) {
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
  const tokens: number[] = [];
  const weights: number[] = [];
  const add = (start: number, end: number, weight: number) => {
    const part = renderer.encode(whole.slice(start, end), { continues: start > 0 });
    for (const token of part) {
      tokens.push(token);
      weights.push(weight);
    }
  };
  let done = 0;
  for (const { start, end } of spans) {
    add(done, start, 0);
    add(start, end, 1);
    done = end;
  }
  add(done, whole.length, 0);
  return { tokens, weights };
}
