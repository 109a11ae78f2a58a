// One answer as text: what the model wrote, the program in it, why it failed, and how sure the model was.
import { languageNamed } from "../../core/languages/languages.ts";
import { visibleLine } from "../../core/visible.ts";
import { failedLine } from "../../grading/failed-line.ts";
import { extractCode } from "../../grading/index.ts";
import type { AnswerLogprobs, Batch, BatchGroup } from "../../runs/batch.ts";
import type { Episode } from "../../runs/events.ts";
import { maxResponseCharacters } from "../../runs/rollouts.ts";
import { episodeLine, type SampleTurn, turnsOf, writtenOf } from "../../runs/turns.ts";
import type { Tokenizer } from "../../tokenizer/index.ts";
import { describeFailure } from "./failure.ts";
import { batchKey, block, number, question, showCommand } from "./show-batch.ts";

interface AnswerOptions {
  /** Undefined: its tokens are no longer in the journal. */
  logprobs: AnswerLogprobs | undefined;
  /** A text says why there is none. */
  tokenizer: Tokenizer | string;
  /** Show the answer from its tokens, reasoning and control tokens included. */
  raw: boolean;
}

export function describeSample(
  run: string,
  batch: Batch,
  group: BatchGroup,
  sample: number,
  { logprobs, tokenizer, raw }: AnswerOptions,
): string {
  const { sampled, judged } = group;
  const answer = writtenOf(group, sample);
  const talk = turnsOf(group, sample);
  const grade = group.graded[sample]?.grade;
  const lines = [
    `${batchKey(batch)} group ${sampled.group} sample ${sample}: ${visibleLine(sampled.problem, 100)}`,
    `  verdict   ${grade ? `${grade.verdict}, ${grade.status}; ${grade.passed} of ${grade.total} tests passed${grade.cached ? "; known from an equal program" : ""}` : "not graded yet"}`,
    `  reward    ${number(grade?.reward)}   advantage ${number(judged?.advantages[sample])}${judged?.skipped ? " (the group taught nothing)" : ""}`,
    `  tokens    ${answer.tokens}${answer.truncated ? ", cut at the limit" : ""}` +
      `; prompt ${sampled.promptTokens}; policy ${sampled.policy}, seed ${sampled.seed ?? "the server's"}`,
    ...logprobLines(logprobs, tokenizer),
  ];
  if (grade && grade.flags.length > 0) lines.push(`  flags     ${grade.flags.join(", ")}`);
  const episode = grade?.episode;
  if (episode) lines.push(`  episode   ${episodeLine(episode)}`, ...environmentLines(episode));
  if (grade?.message !== undefined) lines.push(`  message   ${visibleLine(grade.message, 2000)}`);
  const text = raw ? rawText(logprobs, tokenizer) : answer.text;
  const cut = !raw && answer.text.length >= maxResponseCharacters;
  lines.push(...question(sampled));
  if (episode || talk.length > 1) lines.push(...talkLines(talk));
  const title = raw ? "answer, as it was sampled" : "answer";
  if (raw || talk.length <= 1) lines.push("", title, ...block(text));
  if (cut) lines.push(`  … cut at ${maxResponseCharacters} characters; raw=true shows all of it`);
  const code = extractCode(text);
  if (code !== null || !episode)
    lines.push("", ...(code === null ? ["program: none, there is no closed code block"] : ["program", ...block(code)]));
  if (grade?.failure) {
    const line = failedLine(grade.failure.stderr, languageNamed(grade.language ?? ""));
    const place = line === undefined ? "" : `, at line ${line} of the program`;
    lines.push("", `first failing test${place}`, describeFailure(grade.failure, grade.total));
  }
  const others = sampled.samples.length > 1 ? `sample=${(sample + 1) % sampled.samples.length}` : "";
  if (others) lines.push("", `  the next: ${showCommand(run, batchKey(batch), `group=${sampled.group}`, others)}`);
  return lines.join("\n");
}

/** What was said, turn by turn. */
function talkLines(talk: readonly SampleTurn[]): string[] {
  return talk.flatMap(({ turn, counts, parent, rewritten, added, text, calls, tokens, truncated, reward }, place) => {
    const facts = [
      `${tokens} tokens${truncated ? ", cut at the limit" : ""}`,
      reward === null ? "" : `reward ${number(reward)}`,
      rewritten !== null ? `a sequence of its own: ${rewritten}` : "",
      rewritten === null && parent !== (talk[place - 1]?.turn ?? null)
        ? `goes on from ${parent === null ? "nothing" : `turn ${parent}`}`
        : "",
      counts ? "" : "not asked for in the end, trained on nowhere",
    ];
    return [
      ...added.flatMap(({ role, content }) => ["", visibleLine(role, 20), ...block(content)]),
      "",
      `turn ${turn} (${facts.filter(Boolean).join("; ")})`,
      ...(text === "" && calls.length > 0 ? [] : block(text)),
      ...calls.map((call) => `  calls ${visibleLine(call, 2000)}`),
    ];
  });
}

/** What the environment wrote down. */
function environmentLines({ metrics, log, ownMs }: Episode): string[] {
  const figures = Object.entries(metrics).map(([name, value]) => `${visibleLine(name, 80)} ${number(value)}`);
  return [
    `  own time  ${(ownMs / 1000).toFixed(1)} s in which no answer was awaited`,
    ...(figures.length > 0 ? [`  figures   ${figures.join(", ")}`] : []),
    ...Object.entries(log).map(([name, text]) => `  log       ${visibleLine(name, 80)}: ${visibleLine(text, 400)}`),
  ];
}

function rawText(logprobs: AnswerLogprobs | undefined, tokenizer: Tokenizer | string): string {
  if (!logprobs) return "(its tokens were dropped from the journal: keep_journal=checkpoint)";
  return typeof tokenizer === "string" ? `(${tokenizer})` : tokenizer.decode(logprobs.tokens);
}

function logprobLines(logprobs: AnswerLogprobs | undefined, tokenizer: Tokenizer | string): string[] {
  if (!logprobs || logprobs.sampler.length === 0) return [];
  const { tokens, sampler, trainer } = logprobs;
  const mean = sampler.reduce((sum, value) => sum + value, 0) / sampler.length;
  const order = [...sampler.keys()].sort((a, b) => sampler[a]! - sampler[b]!).slice(0, 3);
  const least = order.map((index) => {
    const text = typeof tokenizer === "string" ? `token ${tokens[index]}` : quoted(tokenizer.decode([tokens[index]!]));
    return `${text} at ${index} (${sampler[index]!.toFixed(2)})`;
  });
  const lines = [
    `  logprobs  mean ${mean.toFixed(4)}, perplexity ${Math.exp(-mean).toFixed(3)}; least likely: ${least.join(", ")}`,
  ];
  if (!trainer) return lines;
  let largest = 0;
  let total = 0;
  for (const [index, value] of trainer.entries()) {
    const gap = Math.abs(value - sampler[index]!);
    largest = Math.max(largest, gap);
    total += gap;
  }
  lines.push(
    `  trainer   differs from the sampler by ${(total / trainer.length).toExponential(1)} on average, ${largest.toExponential(1)} at most`,
  );
  return lines;
}

const quoted = (text: string) => JSON.stringify(visibleLine(text, 24)).replaceAll("\\\\", "\\");
