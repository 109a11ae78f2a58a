// Environments for programming problems, whichever data set they are of: repair, where the model sees how its program did and corrects
// it, and python, where it may run Python while it works. What hidden tests hold is never shown to it.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import type { TrainingProblem } from "../own-problems.ts";
import { type Environment, type Episode, environment } from "./environment.ts";

const texts = z
  .strictObject({ failed: z.string(), example: z.string(), noProgram: z.string() })
  .parse(JSON.parse(readFileSync(new URL("../../data/repair-template.json", import.meta.url), "utf8")));

/** In the words that the bundled model has learned to read; what else can go wrong is an error at run time to whoever reads it. */
const statusWords: Readonly<Record<string, string>> = {
  wrong_answer: "wrong answer",
  time_limit: "time limit",
  memory_limit: "memory limit",
  output_limit: "output limit",
};

/** Writes, sees what the statement's examples say (where it has none, how all tests went in one word), and repairs; all tests judge. */
const repair = environment<TrainingProblem>({
  problems: [], // the run's data
  maxTurns: 3,
  async run({ chat, grade, tryExamples, log }) {
    let graded: Awaited<ReturnType<Episode["grade"]>> | undefined;
    for await (const { text, turn } of chat) {
      graded = await grade(text);
      if (turn === 1) log("first_correct", Number(graded.correct));
      const feedback = graded.correct ? undefined : await feedbackOn(text, graded, tryExamples);
      if (feedback === undefined) break;
      chat.user(feedback);
    }
    return graded;
  },
});

async function feedbackOn(
  answer: string,
  { status }: { status: string },
  tryExamples: Episode["tryExamples"],
): Promise<string | undefined> {
  if (status === "format_error") return texts.noProgram;
  const tried = await tryExamples(answer);
  if (!tried) return texts.failed.replace("{status}", wordsOf(status));
  if (tried.correct) return undefined;
  const { failure } = tried;
  if (tried.status !== "wrong_answer" || !failure) return texts.failed.replace("{status}", wordsOf(tried.status));
  const { input, expected, printed } = failure;
  return texts.example.replaceAll(/\{(input|expected|printed)\}/g, (_, name: "input" | "expected" | "printed") =>
    ({ input, expected, printed })[name].trimEnd(),
  );
}

const wordsOf = (status: string): string => statusWords[status] ?? "runtime error";

/** Runs Python in the sandbox as often as it likes, then answers. */
const python = environment<TrainingProblem>({
  problems: [], // the run's data
  tools: (_, episode) => ({
    python: {
      description: "Runs a Python program and gives what it printed.",
      inputSchema: z.object({
        code: z.string().describe("the whole program"),
        stdin: z.string().optional().describe("what it reads from standard input"),
      }),
      execute: async ({ code, stdin }: { code: string; stdin?: string }) => {
        const { status, stdout, stderr } = await episode.python(code, { ...(stdin !== undefined && { stdin }) });
        const ended = status === "finished" ? "" : `(${status})`;
        return [stdout.slice(0, shownCharacters), stderr.slice(-shownCharacters), ended].filter(Boolean).join("\n");
      },
    },
  }),
  async run({ chat, grade }) {
    let answer = "";
    for await (const { text } of chat) answer = text;
    return grade(answer);
  },
});

/** Of what a program printed. */
const shownCharacters = 4096;

const environments: Readonly<Record<string, Environment>> = { repair, python };

/** An environment of this package; undefined for every other name. */
export const codeEnvironment = (name: string): Environment | undefined =>
  Object.hasOwn(environments, name) ? environments[name] : undefined;

export const codeEnvironmentNames: readonly string[] = Object.keys(environments);

/** Changes when what is said to the model does. */
export const codeFingerprint = (name: string): string =>
  `${name} ${createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, 16)}`;
