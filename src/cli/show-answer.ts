// One answer as text: what the model wrote, the program in it, why it failed, and how sure the model was.
import { visibleLine } from "../core/visible.ts";
import { extractCode } from "../grading/index.ts";
import type { AnswerLogprobs, Batch, BatchGroup } from "../runs/batch.ts";
import { maxResponseCharacters } from "../runs/rollouts.ts";
import type { Tokenizer } from "../tokenizer/index.ts";
import { describeFailure } from "./failure-text.ts";
import { batchKey, block, number, question } from "./show-batch.ts";
import { showCommand } from "./show-command.ts";

export interface AnswerOptions {
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
  const answer = sampled.samples[sample]!;
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
  if (grade?.message !== undefined) lines.push(`  message   ${visibleLine(grade.message, 2000)}`);
  const text = raw ? rawText(logprobs, tokenizer) : answer.text;
  const cut = !raw && answer.text.length >= maxResponseCharacters;
  lines.push(...question(sampled), "", raw ? "answer, as it was sampled" : "answer", ...block(text));
  if (cut) lines.push(`  … cut at ${maxResponseCharacters} characters; raw=true shows all of it`);
  const code = extractCode(text);
  lines.push("", ...(code === null ? ["program: none, there is no closed code block"] : ["program", ...block(code)]));
  if (grade?.failure) lines.push("", "first failing test", describeFailure(grade.failure, grade.total));
  const others = sampled.samples.length > 1 ? `sample=${(sample + 1) % sampled.samples.length}` : "";
  if (others) lines.push("", `  the next: ${showCommand(run, batchKey(batch), `group=${sampled.group}`, others)}`);
  return lines.join("\n");
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
  let most = 0;
  let total = 0;
  for (const [index, value] of trainer.entries()) {
    const gap = Math.abs(value - sampler[index]!);
    most = Math.max(most, gap);
    total += gap;
  }
  lines.push(
    `  trainer   differs from the sampler by ${(total / trainer.length).toExponential(1)} on average, ${most.toExponential(1)} at most`,
  );
  return lines;
}

const quoted = (text: string) => JSON.stringify(visibleLine(text, 24)).replaceAll("\\\\", "\\");
