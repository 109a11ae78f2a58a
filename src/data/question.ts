// The text a model is asked with: role, question, answer format, a code fence to fill, and the line after which it answers. The
// wording is data (question-template.json, or a file of the user's with the same keys); the layout is here.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { ConfigError, messageOf } from "../core/errors.ts";
import type { Signature } from "../core/languages/call.ts";
import { type LanguageName, languageOf } from "../core/languages/languages.ts";

const text = z.string().min(1);

const QuestionTemplate = z.strictObject({
  /** First paragraph: who answers, and what a right answer is; `{language}` is filled in. */
  role: text,
  /** How a program that reads standard input is asked for. */
  stdin: text,
  /** How an answer that completes starter code is asked for. */
  starter: text,
  /** How a function without starter code is asked for; `{name}` and `{count}` are filled in. */
  function: text,
  /** Stands in the code fence where there is no starter code; `{comment}` begins a comment. */
  placeholder: text,
  /** Last line, after which the model answers. */
  answer: text,
});

/** The texts that a question is made of. */
export type QuestionTemplate = z.infer<typeof QuestionTemplate>;

/** What the prompt says about a problem. */
export interface Question {
  /** The problem itself, without instructions. */
  question: string;
  /** Counts as present when it has a character that is not blank. */
  starterCode?: string | null;
  /** Languages that the answer may be in; default Python. */
  languages?: readonly LanguageName[] | undefined;
  /** The function that the tests call; named in the prompt when there is no starter code, and declared where the language wants its types. */
  call?: { functionName: string; argumentCount: number; signature?: Signature | undefined } | null;
}

/** A chat message that a question is made of. */
export interface QuestionMessage {
  /** Who speaks. */
  role: "system" | "user";
  /** What is said. */
  content: string;
}

/** How a question is written. */
export interface QuestionOptions {
  /** Default: the template that ships with Whetstone. */
  template?: QuestionTemplate;
  /** True: the role sentence becomes a system message. Default: one user message holds everything. */
  systemRole?: boolean;
}

/** The template that ships with Whetstone. */
export const defaultQuestionTemplate: QuestionTemplate = readQuestionTemplate(
  new URL("question-template.json", import.meta.url),
);

/** Reads a template file: a JSON object with exactly the keys of `QuestionTemplate`. */
export function readQuestionTemplate(file: string | URL): QuestionTemplate {
  try {
    return QuestionTemplate.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (cause) {
    const keys = Object.keys(QuestionTemplate.shape).join(", ");
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : messageOf(cause);
    throw new ConfigError(
      "config/question-template",
      `The question template ${String(file)} cannot be used: ${reason}. Give a JSON object with the texts ${keys}.`,
      { cause },
    );
  }
}

/** Names a template in a run's config: results are comparable only between equal hashes. */
export function questionTemplateHash(template: QuestionTemplate = defaultQuestionTemplate): string {
  const ordered = Object.keys(QuestionTemplate.shape).map((key) => inWords(template[key as keyof QuestionTemplate]));
  return createHash("sha256").update(JSON.stringify(ordered)).digest("hex").slice(0, 16);
}

/** The whole prompt as one text, with nothing of the chat format around it. */
export function buildQuestion(problem: Question, options: Omit<QuestionOptions, "systemRole"> = {}): string {
  const template = options.template ?? defaultQuestionTemplate;
  return `${inWords(template.role, problem.languages)}\n\n${buildTask(problem, template)}`;
}

/** The prompt as chat messages, ready for a renderer. */
export function buildMessages(problem: Question, options: QuestionOptions = {}): QuestionMessage[] {
  const template = options.template ?? defaultQuestionTemplate;
  if (!options.systemRole) return [{ role: "user", content: buildQuestion(problem, { template }) }];
  return [
    { role: "system", content: inWords(template.role, problem.languages) },
    { role: "user", content: buildTask(problem, template) },
  ];
}

/** Everything after the role sentence. */
function buildTask(problem: Question, template: QuestionTemplate): string {
  const { languages = [] } = problem;
  const starter = starterOf(problem) ?? inWords(template.placeholder, languages);
  const tag = languages.length > 1 ? "LANGUAGE" : languageOf(languages[0]).tags[0];
  const fence = `\`\`\`${tag}\n${starter}\n\`\`\``;
  return `${problem.question}\n\n### Format: ${formatSentence(problem, template)}\n${fence}\n\n${template.answer}\n\n`;
}

/** What is said of a language, or of the choice between several. */
function inWords(text: string, languages: readonly LanguageName[] = []): string {
  const { title, comment } = languageOf(languages[0]);
  const isChoice = languages.length > 1;
  const named = text.replaceAll(isChoice ? "{language} " : "{language}", isChoice ? "" : title);
  return named.replaceAll("{comment}", comment);
}

function formatSentence(problem: Question, template: QuestionTemplate): string {
  const asked = taskSentence(problem, template);
  const { languages = [] } = problem;
  if (languages.length < 2) return [asked, languageOf(languages[0]).note].filter(Boolean).join(" ");
  const tags = languages.map((name) => languageOf(name).tags[0]).join(", ");
  const notes = languages
    .map((name) => languageOf(name))
    .flatMap(({ title, note }) => (note ? `${title}: ${note}` : []));
  return [asked, `Write it in one of these languages and name it in place of LANGUAGE: ${tags}.`, ...notes].join(" ");
}

function taskSentence(problem: Question, template: QuestionTemplate): string {
  if (starterOf(problem) !== undefined) return template.starter;
  if (!problem.call) return template.stdin;
  const { functionName, argumentCount } = problem.call;
  return template.function.replaceAll("{name}", () => functionName).replaceAll("{count}", () => String(argumentCount));
}

/** Code to complete: the problem's own, or the function that is asked for. */
function starterOf({ starterCode, call, languages = [] }: Question): string | undefined {
  if (typeof starterCode === "string" && starterCode.trim() !== "") return starterCode;
  return call?.signature && languages.length === 1 ? languageOf(languages[0]).starter?.(call.signature) : undefined;
}
