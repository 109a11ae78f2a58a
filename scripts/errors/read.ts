// Reads every error code of the source, and what is said with it: the argument after the code, with … for what is only known when it
// happens. Syntax alone is looked at, no types.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript-api";
import { metricMeaning } from "../../src/runs/metric-names.ts";

const source = fileURLToPath(new URL("../../src/", import.meta.url));

/** The first part of a code and what errors of that kind are about, in the order of the page. */
export const areas: Readonly<Record<string, string>> = {
  config: "The command line or a config value is wrong. Exit code 2.",
  cli: "A command cannot go on. Exit code 1.",
  data: "Problems cannot be found or read.",
  hub: "A model or data set repository of the Hugging Face hub (or of the mirror in `HF_ENDPOINT`) cannot be read.",
  network: "A proxy that `HTTPS_PROXY` or `HTTP_PROXY` names cannot be used. Nothing was sent to the server behind it.",
  tokenizer: "The tokenizer of a model cannot be found or used.",
  renderer: "A conversation cannot be written, or a response cannot be read, in the chat format asked for.",
  sandbox: "A program could not be run at all. Never a verdict on the program: it is graded again or left out.",
  rl: "A training run cannot go on. What it has is saved; it can be resumed once the cause is gone.",
  runs: "The run directory cannot be used or written. Exit code 1; nothing in it was changed.",
  export: "A trained model cannot be taken out of its run. Nothing is left behind.",
  archive: "What a server or a registry packed cannot be unpacked; nothing of it is used.",
  dashboard: "The dashboard cannot be served (exit code 1), or what its page asked for is not there.",
  client:
    "The Tinker client (`whetstone/tinker`). Every class is a `TinkerError`; refusals by status are an `APIStatusError`.",
  protocol: "Bytes, JSON or an address that does not follow the Tinker protocol. A server answers 400 or 422 with it.",
  server:
    'What the Tinker-compatible server answers: the HTTP status and `{"detail": "MESSAGE [CODE]", "code": "CODE"}`; or what ends `./whet serve`.',
  endpoint:
    'What an agent gets from the OpenAI-compatible endpoint: the HTTP status and `{"error": {"message", "type", "code"}}`, where the code is the part after the slash with `_` for `-`.',
  engine: "The embedded engine: loading a model, training, sampling, checkpoints.",
  graph:
    "A tensor graph was built or fed wrongly, or ONNX Runtime refused it: faults of the code that builds the graph; please report them.",
};

export interface ErrorCode {
  code: string;
  /** Each way in which it is said, with the HTTP status before it where there is one. */
  messages: string[];
}

/** Every code of the source, sorted. */
export function readErrorCodes(): ErrorCode[] {
  const found = new Map<string, Set<string>>();
  for (const name of readdirSync(source, { recursive: true, encoding: "utf8" }).sort()) {
    if (!name.endsWith(".ts") || name.endsWith(".test.ts")) continue;
    const file = ts.createSourceFile(name, readFileSync(`${source}${name}`, "utf8"), ts.ScriptTarget.ES2023, true);
    visit(file, (code, texts) => {
      const messages = found.get(code) ?? new Set();
      found.set(code, messages);
      for (const text of texts) messages.add(text);
    });
  }
  return [...found]
    .map(([code, messages]) => ({ code, messages: [...messages] }))
    .sort((a, b) => (a.code < b.code ? -1 : 1));
}

const codePattern = new RegExp(`^(?:${Object.keys(areas).join("|")})/[a-z0-9]+(?:-[a-z0-9]+)*$`);

function visit(node: ts.Node, take: (code: string, texts: string[]) => void): void {
  // Names of metrics have the same form.
  const isCode = ts.isStringLiteralLike(node) && codePattern.test(node.text) && metricMeaning(node.text) === undefined;
  if (isCode) take(node.text, messagesFor(node));
  ts.forEachChild(node, (child) => visit(child, take));
}

/** What is said with a code: the argument or property beside it; else what the comment of its class says. */
function messagesFor(code: ts.Node): string[] {
  let value = code;
  while (value.parent && (ts.isConditionalExpression(value.parent) || ts.isParenthesizedExpression(value.parent)))
    value = value.parent;
  const holder = value.parent;
  if (ts.isPropertyAssignment(holder) && ts.isObjectLiteralExpression(holder.parent)) {
    const beside = holder.parent.properties.find((property) => property.name?.getText() === "message");
    if (beside && ts.isPropertyAssignment(beside)) return said(beside.initializer);
  }
  const values = ts.isArrayLiteralExpression(holder)
    ? holder.elements
    : ts.isCallExpression(holder) || ts.isNewExpression(holder)
      ? holder.arguments
      : undefined;
  if (values) {
    const index = values.indexOf(value as ts.Expression);
    const before = values[index - 1];
    const isBadRequest = ts.isCallExpression(holder) && holder.expression.getText() === "badRequest";
    const status = before && ts.isNumericLiteral(before) ? `${before.text}: ` : isBadRequest ? "400: " : "";
    const next = values[index + 1];
    const texts = next === undefined ? [] : said(next);
    if (texts.length > 0) return texts.map((text) => status + text);
  }
  return commentAbove(code);
}

/** The texts of an expression; of a name, those of its value, or those that a function's callers give it. */
function said(expression: ts.Expression): string[] {
  if (!ts.isIdentifier(expression)) return worded(textOf(expression));
  const name = expression.text;
  for (let scope: ts.Node | undefined = expression.parent; scope; scope = scope.parent) {
    const body = ts.isFunctionLike(scope) && "body" in scope ? scope.body : undefined;
    const local = body && declarationIn(body, name);
    if (local?.initializer) return worded(textOf(local.initializer));
    if (!ts.isFunctionLike(scope)) continue;
    const index = scope.parameters.findIndex((parameter) => parameter.name.getText() === name);
    const called = functionName(scope);
    if (index >= 0) return called === undefined ? [] : argumentsOf(expression.getSourceFile(), called, index);
  }
  return [];
}

function declarationIn(body: ts.Node, name: string): ts.VariableDeclaration | undefined {
  let found: ts.VariableDeclaration | undefined;
  const look = (node: ts.Node) => {
    if (ts.isVariableDeclaration(node) && node.name.getText() === name) found ??= node;
    if (!ts.isFunctionLike(node)) ts.forEachChild(node, look);
  };
  ts.forEachChild(body, look);
  return found;
}

function functionName(node: ts.SignatureDeclaration): string | undefined {
  if (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node)) return node.name?.getText();
  return ts.isVariableDeclaration(node.parent) ? node.parent.name.getText() : undefined;
}

/** What the calls of a function in its file give as their argument number `index`. */
function argumentsOf(file: ts.SourceFile, name: string, index: number): string[] {
  const texts: string[] = [];
  const look = (node: ts.Node) => {
    const isCall = ts.isCallExpression(node) && node.expression.getText().replace(/^this\./, "") === name;
    const argument = isCall ? node.arguments[index] : undefined;
    if (argument && !ts.isIdentifier(argument)) texts.push(...worded(textOf(argument)));
    ts.forEachChild(node, look);
  };
  look(file);
  return texts;
}

/** The doc comment of the class that the node stands in. */
function commentAbove(node: ts.Node): string[] {
  for (let above: ts.Node | undefined = node.parent; above && !ts.isSourceFile(above); above = above.parent) {
    if (ts.isFunctionDeclaration(above)) return [];
    if (!ts.isClassDeclaration(above)) continue;
    const comment = ts.getJSDocCommentsAndTags(above).at(-1)?.comment;
    return typeof comment === "string" ? worded(comment) : [];
  }
  return [];
}

/** On one line; nothing when there is no word in it. */
function worded(text: string): string[] {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return /[a-z]{3}/i.test(line) ? [line] : [];
}

/** A text expression as it reads; … for a value. */
function textOf(node: ts.Expression): string {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isIdentifier(node) && node.text === "whet") return "./whet";
  if (ts.isTemplateExpression(node)) {
    const spans = node.templateSpans.map(({ expression, literal }) => {
      const value = ts.isIdentifier(expression) ? textOf(expression) : "…";
      return value + literal.text;
    });
    return (node.head.text + spans.join("")).replaceAll(/…{2,}/g, "…");
  }
  if (ts.isParenthesizedExpression(node)) return textOf(node.expression);
  if (ts.isConditionalExpression(node)) {
    const either = [textOf(node.whenTrue), textOf(node.whenFalse)];
    return either.every((text) => text.length > 20) ? either.join(" / ") : "…";
  }
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken)
    return textOf(node.left) + textOf(node.right);
  return "…";
}
