// Rejection sampling: a model's own answers, of which those that pass become demonstrations for supervised training. What was asked and
// judged is on disk problem by problem, so that an end in the middle loses nothing; the data set appears whole.
import { existsSync, rmSync } from "node:fs";
import { z } from "zod";
import { ConfigError } from "../core/errors.ts";
import { writeFileAtomic } from "../core/files.ts";
import { JsonLinesWriter, readJsonLines, toJsonLine } from "../core/jsonl.ts";
import type { Message, Renderer } from "../renderers/index.ts";
import { messagesOf } from "./own-problems.ts";
import type { Group } from "./rollout.ts";
import type { Task } from "./tasks.ts";

/** What came of one problem. */
const Collected = z.object({
  /** Its place in the order in which problems are asked. */
  index: z.int().min(0),
  tried: z.int().min(0),
  passed: z.int().min(0),
  ungraded: z.int().min(0),
  /** The conversations that are kept, as `./whet sft` reads them. */
  rows: z.array(z.record(z.string(), z.unknown())),
});
type Collected = z.output<typeof Collected>;

/** The answers of a group that pass, none twice and at most `keep`, in the order of the samples. */
export function collect(
  task: Task,
  { completions }: Group,
  renderer: Renderer,
  keep: number,
): Omit<Collected, "index"> {
  const right = completions.filter(({ grade }) => grade.verdict === "pass");
  const said = new Map<string, Message>();
  for (const { tokens, truncated, grade } of right) {
    const { message, termination } = renderer.parseResponse(tokens);
    // An answer that did not end would teach not to end.
    if (truncated || termination !== "stop_sequence" || message.toolCalls) continue;
    const what = grade.codeHash ?? message.content.trim();
    if (!said.has(what) && said.size < keep) said.set(what, message);
  }
  const { id, source, problem } = task;
  const rows = [...said.values()].map((message, index) => ({
    id: index === 0 ? id : `${id}#${index + 1}`,
    source,
    messages: [...messagesOf(problem!), message],
  }));
  const ungraded = completions.filter(({ grade }) => grade.verdict === "ungraded").length;
  return { tried: completions.length, passed: right.length, ungraded, rows };
}

/** A data set in the making: FILE.partial until all of it is there. */
export class Collection {
  readonly #out: string;
  readonly #partial: string;
  readonly #done = new Map<number, Collected>();
  readonly #writer: JsonLinesWriter;
  readonly totals = { problems: 0, solved: 0, tried: 0, passed: 0, ungraded: 0, kept: 0 };

  /** `how`: everything that decides what is collected; what was begun otherwise is not gone on with. */
  constructor(out: string, how: Readonly<Record<string, unknown>>) {
    this.#out = out;
    this.#partial = `${out}.partial`;
    if (existsSync(out))
      throw new ConfigError("config/file-exists", `out=${out} is there already. Name another file, or remove it.`);
    const [begun, ...lines] = readJsonLines(this.#partial) as Record<string, unknown>[];
    const other = begun && Object.keys(how).find((key) => JSON.stringify(how[key]) !== JSON.stringify(begun[key]));
    if (other !== undefined)
      throw new ConfigError(
        "config/other-collection",
        `${this.#partial} was begun with ${other}=${String(begun![other])}, and now it is ${String(how[other])}. Set the same again to go on, remove that file, or name another with out=.`,
      );
    for (const line of lines) this.#take(Collected.parse(line));
    this.#writer = new JsonLinesWriter(this.#partial);
    if (!begun) this.#writer.append(how);
  }

  has(index: number): boolean {
    return this.#done.has(index);
  }

  add(one: Collected): void {
    this.#writer.append(one);
    this.#take(one);
  }

  /** Writes the data set, in the order of the problems. */
  finish(): void {
    const inOrder = [...this.#done.values()].sort((a, b) => a.index - b.index);
    writeFileAtomic(this.#out, inOrder.flatMap(({ rows }) => rows.map(toJsonLine)).join(""));
    this.close();
    rmSync(this.#partial);
  }

  close(): void {
    this.#writer.close();
  }

  #take(one: Collected): void {
    this.#done.set(one.index, one);
    const { totals } = this;
    totals.problems++;
    if (one.rows.length > 0) totals.solved++;
    totals.tried += one.tried;
    totals.passed += one.passed;
    totals.ungraded += one.ungraded;
    totals.kept += one.rows.length;
  }
}
