// What can happen in a run. The loop writes these events to the journal and nothing else; every file, picture and figure of a run is
// a fold over them. One schema per event: the types are inferred from it, and what is read back from disk is checked against it.
// Names are as in the code (camelCase); the files people read have their own spelling. Times are milliseconds since the epoch.
import { z } from "zod";
import { CheckpointRecord } from "./checkpoints.ts";
import { Control } from "./controls.ts";
import { asFigure, Finding, figure } from "./findings.ts";

const index = z.int().min(0);
/** Figures by name; a step has a hundred, so they are checked in one go. */
const figures = z.transform((input, context): Record<string, number> => {
  const known = (typeof input === "object" && input ? input : { "": input }) as Record<string, unknown>;
  const texts: Record<string, number> = {};
  for (const name in known) {
    const value = known[name];
    if (typeof value === "number") continue;
    const number = asFigure(value);
    if (number !== undefined) texts[name] = number;
    else context.issues.push({ code: "custom", input: value, path: [name], message: "expected a number" });
  }
  return Object.assign(known as Record<string, number>, texts);
});

/** A piece of work: when it began and when it ended. A span may run beside others. */
export const Span = z.object({ name: z.string(), start: z.number(), end: z.number() });
export type Span = z.output<typeof Span>;

/** Which group: of a training batch, or of the evaluation of a policy version. */
const place = {
  phase: z.enum(["train", "eval"]),
  /** The batch, counted from 0; of an evaluation, the policy version it measures. */
  batch: index,
  group: index,
};

/** What a person needs to see of a wrong program; each text is cut to 2 KiB. */
export const Failure = z.object({
  testIndex: index,
  input: z.string(),
  expected: z.string(),
  printed: z.string(),
  stderr: z.string(),
  /** How that test ended. */
  status: z.string(),
});
export type Failure = z.output<typeof Failure>;

/** Why an episode ended. */
export const stopReasons = ["done", "max_turns", "context", "truncated", "malformed", "timeout", "stopped"] as const;
export type StopReason = (typeof stopReasons)[number];

/** What there is to say of an answer that came about in several turns. */
export const Episode = z.object({
  stop: z.enum(stopReasons),
  /** The turns that count, by their numbers; 0 is the answer of the group's request. Others are trained on nowhere. */
  turns: z.array(index),
  /** What was given for single turns, beside `turns`. */
  rewards: z.array(figure),
  /** Tokens that the model was shown behind its first prompt. */
  contextTokens: index,
  /** Why turns began a sequence of their own. */
  rewrites: z.array(z.string()),
  toolCalls: index,
  toolErrors: index,
  malformed: index,
  /** Turns that an earlier process sampled and this one did not ask for again. */
  diverged: index,
  /** The time in which no answer was awaited: the environment's own. */
  ownMs: figure,
  /** Figures that the environment gave. */
  metrics: figures,
  /** What it wrote down for people. */
  log: z.record(z.string(), z.string()),
});
export type Episode = z.output<typeof Episode>;

/** A verdict as the loop keeps it. */
export const Grade = z.object({
  verdict: z.enum(["pass", "fail", "ungraded"]),
  status: z.string(),
  /** null: ungraded, and in neither baseline nor loss. */
  reward: figure.nullable(),
  formatOk: z.boolean(),
  passed: index,
  total: index,
  ran: index,
  wallMs: figure,
  queueMs: figure,
  cached: z.boolean(),
  flags: z.array(z.string()),
  codeHash: z.string().nullable(),
  /** Of the program, unless it is Python. */
  language: z.string().optional(),
  /** What the reward is the weighted sum of, by name and before weights; left out where it is one. */
  rewards: figures.optional(),
  message: z.string().optional(),
  failure: Failure.optional(),
  /** Undefined: the one answer of the group's request is all there was. */
  episode: Episode.optional(),
});
export type Grade = z.output<typeof Grade>;

/** One problem's outcome: enough to compute every figure and to compare two evaluations problem by problem. */
export const ProblemOutcome = z.object({
  id: z.string(),
  source: z.string(),
  /** Graded samples; ungraded ones are counted apart and never as failures. */
  samples: index,
  passed: index,
  ungraded: index,
  well_formed: index,
  truncated: index,
  statuses: z.record(z.string(), index),
  /** Of episodes: means of rewards, turns and what their environment measured. */
  figures: figures.optional(),
});
export type ProblemOutcome = z.output<typeof ProblemOutcome>;

/** What the terms of a batch's answers are divided by; losses are sums otherwise. Formulas: docs/rl.md. */
export const lossScales = ["none", "per_token", "per_datum", "per_answer_token", "constant"] as const;

/** How a sampler that is not the trainer is corrected for. */
export const mismatchNames = ["none", "token_cap", "sequence_mask"] as const;

/** How an update is made of its groups; kept so that it can be made again, whatever the config says by then. */
export const UpdateRule = z.object({
  advantage: z.string(),
  lossScale: z.enum(lossScales),
  /** The longest answer allowed: what `constant` divides by. */
  maxTokens: z.int().min(1),
  maskTruncated: z.boolean(),
  adam: z.object({
    learningRate: z.number(),
    beta1: z.number(),
    beta2: z.number(),
    eps: z.number(),
    weightDecay: z.number(),
    gradClipNorm: z.number(),
  }),
  lossFn: z.string(),
  lossFnConfig: z.record(z.string(), z.number()),
  substeps: z.int().min(1),
  /** Correction for a sampler that is not the trainer. */
  mismatch: z.enum(mismatchNames),
  mismatchCap: z.number(),
  /** Whose log-probabilities count, and how much; a model is a name, a checkpoint's path, or "" for the one that is trained. */
  references: z.array(z.object({ name: z.enum(["start", "teacher"]), model: z.string(), weight: z.number() })),
  /** False: the references alone teach. */
  rewarded: z.boolean(),
});
export type UpdateRule = z.output<typeof UpdateRule>;

const event = <Type extends string, Shape extends z.core.$ZodLooseShape>(type: Type, shape: Shape) =>
  z.object({ type: z.literal(type), at: z.number(), ...shape });

export const RunEvent = z.discriminatedUnion("type", [
  /** A process took the run's directory. */
  event("opened", { pid: index }),
  /** It began, or goes on with, the run. */
  event("started", {
    session: index,
    config: z.record(z.string(), z.unknown()),
    /** Keys whose value is another than in the session before. */
    changes: z.array(z.object({ key: z.string(), was: z.unknown(), is: z.unknown() })),
  }),
  /** Training goes on from a checkpoint, or from the start (null). */
  event("resumed", {
    version: index,
    checkpoint: z.string().nullable(),
    datasetOffset: index,
    /** What is trained, by the server's name. */
    model: z.string(),
  }),
  /** A message for people. */
  event("log", { level: z.enum(["INFO", "WARNING", "ERROR"]), message: z.string() }),
  /** Samples were asked for. What never came back was paid for all the same, perhaps; nothing waits for this event. */
  event("group-requested", {
    ...place,
    samples: index,
    promptTokens: index,
    maxTokens: index,
    /** For a later turn of one sample: which. */
    turn: z.string().optional(),
  }),
  /** All answers of a group are there. Arrays: prompt, tokens (all samples, end to end), logprobs (alike). */
  event("group-sampled", {
    ...place,
    /** The policy version that answered. */
    policy: index,
    problem: z.string(),
    source: z.string(),
    /** What was asked, for people; the prompt's tokens are what the model saw. Cut to maxQuestionCharacters. */
    question: z.string().optional(),
    /** Position in the endless order of the data. */
    datasetIndex: index,
    seed: index.nullable(),
    temperature: z.number(),
    /** Tokens of the prompt, and how many of them the server had cached. */
    promptTokens: index,
    cachedTokens: index,
    /** True: the answers are demonstrations; nothing was sampled or paid for. */
    given: z.boolean().optional(),
    samples: z.array(
      z.object({
        tokens: index,
        truncated: z.boolean(),
        text: z.string(),
        /** Calls of tools, as the model made them. */
        calls: z.array(z.string()).optional(),
      }),
    ),
    start: z.number(),
    end: z.number(),
  }),
  /** A further turn of a sample. Arrays: context (what was shown behind the turn before), tokens, logprobs. */
  event("turn-sampled", {
    ...place,
    sample: index,
    /** Counted from 1; 0 is the sample's answer in the group's request. */
    turn: index,
    /** The turn that it goes on from; null: it begins a sequence. */
    parent: index.nullable(),
    policy: index,
    seed: index.nullable(),
    /** Of the whole prompt, and how many of them the server had cached. */
    promptTokens: index,
    cachedTokens: index,
    /** What was said since the turn before, for people; each cut to maxResponseCharacters. */
    added: z.array(z.object({ role: z.string(), content: z.string() })),
    /** Why it goes on from no turn, though the conversation does. */
    rewritten: z.string().optional(),
    tokens: index,
    truncated: z.boolean(),
    text: z.string(),
    calls: z.array(z.string()).optional(),
    start: z.number(),
    end: z.number(),
  }),
  /** A side effect of a sample's environment: what it gave, so that it is never done again. */
  event("side-effect", { ...place, sample: index, key: z.string(), value: z.unknown() }),
  /** An answer was judged. */
  event("graded", { ...place, sample: index, grade: Grade, start: z.number(), end: z.number() }),
  /** A batch is whole and about to be trained on; durable before the server gets it. Arrays: what each reference thinks of every token. */
  event("update-submitted", {
    step: index,
    rule: UpdateRule,
    examples: index,
    /** Tokens of all examples, prompts included: what the server reads. */
    tokens: index,
    /** Those that references, and a forward pass for a correction, read besides. */
    readTokens: index,
    /** Where in the order of the data the next batch begins. */
    nextOffset: index,
    groups: z.array(
      z.object({
        /** Whose it is: its batch and its place there. */
        batch: index,
        group: index,
        problem: z.string(),
        outcome: z.enum(["mixed", "all-pass", "all-fail", "ungraded"]),
        skipped: z.boolean(),
        advantages: z.array(figure.nullable()),
        /** The samples that are trained on. */
        trained: z.array(index),
        /** Completions with a verdict, and those of them that passed. */
        graded: index,
        passed: index,
      }),
    ),
    /** All groups that it left to later steps (tail=carry). */
    carried: z.array(z.object({ batch: index, group: index, problem: z.string(), datasetIndex: index })),
  }),
  /** The server applied it. Array: logprobs, the trainer's, of every completion token of the trained samples, end to end. */
  event("update-done", {
    step: index,
    lossSum: figure.optional(),
    server: figures,
    start: z.number(),
    end: z.number(),
  }),
  /** A step that the journal has was trained once more, on the way from an older checkpoint. */
  event("retrained", { step: index, tokens: index, start: z.number(), end: z.number() }),
  /** A step is over: its spans, what only the moment could tell, and the figures that follow from all of it. */
  event("step-done", { step: index, datasetOffset: index, spans: z.array(Span), observed: figures, metrics: figures }),
  /** A policy version can be sampled from, also by a later process, under this path. */
  event("policy-published", { version: index, path: z.string().optional(), start: z.number(), end: z.number() }),
  /** Nothing is sampled from this path any more, and the server has deleted it. */
  event("policy-deleted", { path: z.string() }),
  /** Figures for this step will follow; whoever shows steps may wait for them. A second one: it begins anew, its groups so far do not count. */
  event("evaluation-started", { step: index }),
  /** A policy was measured. */
  event("evaluated", {
    step: index,
    /** No step follows it: the policy after the last update. */
    final: z.boolean(),
    outcomes: z.array(ProblemOutcome),
    metrics: figures,
    start: z.number(),
    end: z.number(),
  }),
  /** A checkpoint is on the server. */
  event("saved", { record: CheckpointRecord, start: z.number(), end: z.number() }),
  /** Steps from `to` on are run anew: what the journal says of them so far no longer counts. */
  event("rewound", {
    to: index,
    reason: z.string(),
    /** on_error=rollback: the finding that called for it, and the learning rate from there on. */
    rollback: z.object({ finding: z.string(), learningRate: z.number() }).optional(),
  }),
  /** Somebody asked for something; it holds from the update of `step` on. `id` is the request's. */
  event("control", { step: index, id: z.string(), by: z.string(), control: Control }),
  /** The diagnosis found something after `step` was done; `action` is what on_error makes of it. */
  event("finding", { step: index, finding: Finding, action: z.enum(["none", "pause", "stop", "rollback"]) }),
  /** A process ended its part of the run. */
  event("stopped", {
    outcome: z.enum(["finished", "interrupted", "failed"]),
    error: z.string().optional(),
    /** The error's code, as docs/errors.md lists it. */
    code: z.string().optional(),
    /** Why it was interrupted, other than by a signal: "budget". */
    reason: z.string().optional(),
  }),
]);
/** Something that happened in a run. */
export type RunEvent = z.output<typeof RunEvent>;
export type EventType = RunEvent["type"];
export type EventOf<Type extends EventType> = Extract<RunEvent, { type: Type }>;

/** A group as an update had it. */
export type UpdateGroup = EventOf<"update-submitted">["groups"][number];

/** An event as it is given to the journal, which adds the time. */
export type NewEvent = { [Type in EventType]: Omit<EventOf<Type>, "at"> }[EventType];

/** Large arrays that travel beside an event, in binary. */
export type Arrays = Readonly<Record<string, Int32Array | Float32Array>>;

/** An event as a journal has it. */
export interface JournalEntry {
  event: RunEvent;
  hasArrays: boolean;
  /** Reads the event's arrays; empty where it has none. */
  arrays(): Arrays;
}
