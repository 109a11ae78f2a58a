// What the server sends to the page, as JSON. The server's code imports these types and is checked against them; the page cannot import the
// server's own, as they come with modules of Node.
import type { Syntax } from "./text.js";

/** A run in the list of all. */
export interface ListedRun {
  /** How addresses name it. */
  id: string;
  /** When its journal was last written, in milliseconds since the epoch. */
  changedAt: number;
  bytes: number;
  /** The process that writes it; null where none does. */
  pid: number | null;
}

/** What changes with every event: where the run is. */
export interface Pulse {
  state: string;
  pid: number | null;
  step: number;
  rows: number;
  lastAt: number;
  sinceStep: { groups: number; graded: number };
  /** The share of the journal that was read. */
  walked: number;
  problem: string | null;
}

/** What changes now and then. */
export interface Info {
  config: Readonly<Record<string, unknown>>;
  /** The run or checkpoint whose weights it began with. */
  from: string | null;
  charts: readonly MetricChart[];
  sessions: readonly Session[];
  seconds: number;
  metrics: readonly { name: string; meaning: string }[];
  evaluations: readonly Evaluation[];
  checkpoints: readonly { name: string; step: number; final: boolean }[];
  controls: { paused: boolean };
  /** The worst first. */
  causes: readonly Cause[];
  notes: readonly { at: number; level: string; text: string }[];
}

export interface MetricChart {
  title: string;
  hint?: string;
  lines: readonly (readonly [name: string, label: string, color: string])[];
  stacked?: boolean;
  range?: readonly [low: number | null, high: number | null];
  /** Shown as a percentage. */
  share?: boolean;
  empty?: string;
  optional?: boolean;
}

/** One process's part of a run. */
export interface Session {
  pid: number;
  openedAt: number;
  started: boolean;
  lastAt: number;
  outcome?: string | undefined;
  error?: string | undefined;
  changes: readonly { key: string; was?: unknown; is?: unknown }[];
}

export interface Evaluation extends Span {
  step: number;
  final: boolean;
  metrics: Readonly<Record<string, number | null>>;
}

/** In milliseconds since the epoch. */
export interface Span {
  start: number;
  end: number;
}

export interface NamedSpan extends Span {
  name: string;
}

/** A finding of the diagnosis with what followed from it. */
export interface Cause {
  id: string;
  level: string;
  message: string;
  /** The first and the last that are the evidence. */
  steps?: readonly [number, number] | undefined;
  figures: readonly { name: string; step?: number | undefined; value: unknown }[];
  samples?: readonly { step: number; group: number; sample: number; problem: string }[] | undefined;
  means: string;
  remedy: string;
  command?: string | undefined;
  /** The step after which it was first reported. */
  since: number;
  action: string;
  symptoms: readonly { id: string; message: string; steps?: readonly [number, number] | undefined; since: number }[];
}

/** Figures of steps, by name; a name without any is left out. */
export interface Series {
  /** The row of the first of them. */
  from: number;
  steps: number[];
  columns: Record<string, (number | null)[]>;
}

/** When the stages of some steps ran. */
export interface Stages {
  /** The rows that these are, of so many. */
  from: number;
  to: number;
  rows: number;
  steps: { step: number; lag: number | null; spans: readonly NamedSpan[] }[];
  evaluations: (Span & { step: number })[];
}

export interface Step {
  step: number;
  done: boolean;
  previous: number | null;
  next: number | null;
  learningRate: number | null;
  metrics: Figures;
  spans: readonly NamedSpan[];
  groups: Group[];
}

/** Figures, where those that are not finite are text. */
export type Figures = Readonly<Record<string, number | string>>;

export interface EvaluationDetail {
  step: number;
  done: boolean;
  metrics: Figures;
  sources: Readonly<Record<string, Rate>>;
  groups: Group[];
}

/** A rate with its 95% interval. */
export interface Rate {
  rate: number;
  low: number;
  high: number;
  problems: number;
}

/** Two evaluations: the problems of both, with the shares that passed, and the rates by source. */
export interface Comparison {
  a: number;
  b: number;
  rows: ComparedProblem[];
  sources: ComparedSource[];
}

export interface ComparedSource {
  source: string;
  before: Rate | null;
  after: Rate | null;
}

export interface ComparedProblem {
  id: string;
  source: string;
  before: number | null;
  after: number | null;
  groupBefore: number;
  groupAfter: number;
}

/** A group as a list shows it. */
export interface Group<Answer = Sample> extends Span {
  batch: number;
  group: number;
  /** The step whose update it is in. */
  trainedIn: number;
  problem: string;
  source: string;
  /** null: the journal does not have it. */
  question: string | null;
  policy: number;
  outcome: string | null;
  /** Not trained on. */
  skipped: boolean;
  samples: Answer[];
}

/** A group by itself. */
export interface GroupDetail extends Group<SampleDetail> {
  phase: string;
  prompt: { text: string | null; note: string | null };
}

/** An answer as a list shows it. */
export interface Sample {
  sample: number;
  /** null: not judged yet. */
  verdict: string | null;
  status: string;
  reward: number | null;
  advantage: number | null;
  tokens: number;
  truncated: boolean;
  /** Tests. */
  passed: number;
  total: number;
  flags: readonly string[];
  codeHash: string | null;
}

/** An answer with its texts. */
export interface AnswerTexts extends Sample {
  text: string;
  /** Of the whole text, where it was cut. */
  textLength: number;
  /** The program that was judged; null: the answer has none. */
  code: string | null;
  syntax: Syntax;
  message?: string | undefined;
  failure?: Failure | undefined;
  /** The line of the program that the failure names. */
  failedLine?: number | undefined;
  wallMs?: number | undefined;
  cached?: boolean | undefined;
}

/** An answer within its group. */
export interface SampleDetail extends AnswerTexts {
  /** Of an episode: how it went, in a line. */
  episode: string | null;
}

/** An answer by itself. */
export interface Answer extends AnswerTexts {
  episode: Episode | null;
  /** Empty where there is but the one turn. */
  talk: readonly Turn[];
}

/** The first failing test. */
export interface Failure {
  testIndex: number;
  input: string;
  expected: string;
  printed: string;
  stderr: string;
}

/** What an environment wrote down of an episode. */
export interface Episode {
  line: string;
  ownSeconds: number | null;
  metrics: Readonly<Record<string, number | null>>;
  log: Readonly<Record<string, string>>;
}

/** One answer of the model, and what was said to it before. */
export interface Turn {
  turn: number;
  /** The turn that it goes on from; null: its tokens begin a sequence. */
  parent: number | null;
  counts: boolean;
  added: readonly { role: string; content: string }[];
  /** Why it begins a sequence although the conversation goes on. */
  rewritten: string | null;
  text: string;
  calls: readonly string[];
  tokens: number;
  truncated: boolean;
  reward: number | null;
  seconds: number;
}

/** The tokens of an answer: of one after another, its text and what the sampler and the trainer gave it. */
export interface Tokens {
  parts: TokenPart[];
  pieces: string[];
  /** Why tokens are shown by number. */
  note: string | null;
  logprobs: (number | null)[];
  /** null: not trained on, or not yet. */
  trained: (number | null)[] | null;
}

/** Tokens of one turn: "context" was shown to the model, "sampled" and "trained" it wrote. */
export interface TokenPart {
  turn: number;
  kind: string;
  length: number;
}

/** A problem in the list of all. */
export interface ListedProblem {
  id: string;
  /** Groups of training; answers that were judged, and those that passed. */
  attempts: number;
  graded: number;
  passed: number;
  lastStep: number | null;
  /** How many groups came to each outcome. */
  outcomes: Readonly<Record<string, number>>;
  evaluated: { first: number | null; last: number | null } | null;
}

/** A problem by itself. */
export interface Problem {
  id: string;
  attempts: Attempt[];
  evaluations: Measurement[];
}

/** A group of training. */
export interface Attempt {
  step: number;
  group: number;
  outcome: string;
  skipped: boolean;
  graded: number;
  passed: number;
}

/** Its part of an evaluation. */
export interface Measurement {
  step: number;
  group: number;
  samples: number;
  passed: number;
  ungraded: number;
}
