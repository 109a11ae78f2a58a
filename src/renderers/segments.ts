// A rendered conversation as runs of tokens that share a purpose, and the training weights of each.
import { RendererError } from "./errors.ts";
import type { Message, SupervisedExample, TrainOn } from "./messages.ts";
import { isQuery } from "./reasoning.ts";
import type { Renderer } from "./renderer.ts";

export interface Segment {
  /** The message it belongs to; -1 for a system message that only declares tools. */
  message: number;
  /** `prompted` is content that the generation prompt already holds. `content` includes the end token. */
  part: "header" | "prompted" | "content";
  tokens: number[];
}

/** Joins the segments and weighs each of their tokens. */
export function weigh(segments: readonly Segment[], messages: readonly Message[], trainOn: TrainOn): SupervisedExample {
  checkTrainable(messages, trainOn);
  const chosen = chooseMessages(messages, trainOn);
  const runs = segments.map((segment) => ({ tokens: segment.tokens, trained: isTrained(segment, chosen, trainOn) }));
  if (!runs.some(({ tokens, trained }) => trained && tokens.length > 0)) throw nothingToTrain(messages, trainOn);
  return { ...joinRuns(runs), warnings: [] };
}

/** Runs of tokens, one after the other, with a weight for each token. */
export function joinRuns(
  runs: readonly { tokens: readonly number[]; trained: boolean }[],
): Pick<SupervisedExample, "tokens" | "weights"> {
  return {
    tokens: runs.flatMap(({ tokens }) => tokens),
    weights: runs.flatMap(({ tokens, trained }) => tokens.map(() => (trained ? 1 : 0))),
  };
}

/** Training on several answers at once is questionable where a format writes earlier turns anew. */
export function warningsOf(
  renderer: Pick<Renderer, "hasExtensionProperty">,
  name: string,
  messages: readonly Message[],
  trainOn: TrainOn,
): string[] {
  const answers = messages.filter(({ role }) => role === "assistant").length;
  if (trainOn !== "all_assistant_messages" || renderer.hasExtensionProperty || answers < 2) return [];
  return [
    `${name} rewrites earlier turns, so training on all ${answers} answers at once shows the model turns it would never see when ` +
      "sampling. Make one example per answer.",
  ];
}

export function nothingToTrain(messages: readonly Message[], trainOn: TrainOn): RendererError {
  return new RendererError(
    "renderer/nothing-to-train",
    `With train_on=${trainOn} none of the ${messages.length} messages (${messages.map((message) => message.role).join(", ")}) ` +
      "is trained on. Add the assistant message to learn, or choose another mode.",
  );
}

function isTrained(segment: Segment, chosen: ReadonlySet<number>, trainOn: TrainOn): boolean {
  if (trainOn === "all_tokens") return true;
  if (segment.part === "header" || !chosen.has(segment.message)) return false;
  // Where the model is asked for one turn, it is not asked for what its prompt holds.
  const onlyLast = trainOn === "last_assistant_message" || trainOn === "last_assistant_turn";
  return !(onlyLast && segment.part === "prompted");
}

/** The messages that a mode trains on; -1 is a system message that only declares tools. */
export function chooseMessages(messages: readonly Message[], trainOn: TrainOn): ReadonlySet<number> {
  const indices = (keep: (message: Message, index: number) => boolean) =>
    new Set(messages.flatMap((message, index) => (keep(message, index) ? [index] : [])));
  const isAssistant = (message: Message) => message.role === "assistant";
  switch (trainOn) {
    case "last_assistant_message":
      return new Set([messages.findLastIndex(isAssistant)].filter((index) => index >= 0));
    case "last_assistant_turn": {
      const query = messages.findLastIndex(isQuery);
      return indices((message, index) => isAssistant(message) && index > query);
    }
    case "all_assistant_messages":
      return indices(isAssistant);
    case "all_messages":
    case "all_tokens":
      return new Set([-1, ...messages.keys()]);
    case "all_user_and_system_messages":
      return new Set([-1, ...indices((message) => message.role === "user" || message.role === "system")]);
    case "customized":
      return indices((message) => message.trainable === true);
  }
}

/** Every message has `trainable` in the mode `customized`, and none has it in the others. */
export function checkTrainable(messages: readonly Message[], trainOn: TrainOn): void {
  const wrong = messages.findIndex((message) => (message.trainable !== undefined) !== (trainOn === "customized"));
  if (wrong < 0) return;
  throw new RendererError(
    "renderer/trainable",
    trainOn === "customized"
      ? `Message ${wrong} (${messages[wrong]!.role}) has no "trainable". With train_on=customized every message needs it.`
      : `Message ${wrong} (${messages[wrong]!.role}) has "trainable", but train_on is ${trainOn}. Remove it, or use customized.`,
  );
}
