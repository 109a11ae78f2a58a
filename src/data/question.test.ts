import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import {
  buildMessages,
  buildQuestion,
  defaultQuestionTemplate,
  questionTemplateHash,
  readQuestionTemplate,
} from "./question.ts";

/** As a question in Python has it. */
const inPython = (text: string) => text.replaceAll("{language}", "Python").replaceAll("{comment}", "#");
const texts = {
  ...defaultQuestionTemplate,
  role: inPython(defaultQuestionTemplate.role),
  placeholder: inPython(defaultQuestionTemplate.placeholder),
};

const folder = mkdtempSync(join(tmpdir(), "whet-question-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("a stdin problem: role, question, format, an empty fence to fill, the answer line, nothing else", () => {
  expect(buildQuestion({ question: "Print the sum." })).toBe(
    `${texts.role}\n\nPrint the sum.\n\n### Format: ${texts.stdin}\n` +
      `\`\`\`python\n# YOUR CODE HERE\n\`\`\`\n\n${texts.answer}\n\n`,
  );
  expect(texts.role.startsWith("You are an expert Python programmer.")).toBe(true);
});

test("starter code changes the format sentence and fills the fence", () => {
  const prompt = buildQuestion({
    question: "Add.",
    starterCode: "def add(a, b):\n    pass",
    call: { functionName: "add", argumentCount: 2 },
  });
  expect(prompt).toContain(
    `### Format: ${texts.starter}\n\`\`\`python\ndef add(a, b):\n    pass\n\`\`\`\n\n### Answer:`,
  );
  expect(prompt).not.toContain(texts.placeholder);
});

test.each([null, undefined, "", " \n\t"])("starter code %j counts as none", (starterCode) => {
  const prompt = buildQuestion(starterCode === undefined ? { question: "Q" } : { question: "Q", starterCode });
  expect(prompt).toContain(`### Format: ${texts.stdin}\n\`\`\`python\n${texts.placeholder}\n\`\`\``);
});

test("a function without starter code is named with its number of arguments", () => {
  const prompt = buildQuestion({ question: "Q", call: { functionName: "min$&Cost", argumentCount: 3 } });
  expect(prompt).toContain("a function named `min$&Cost` taking 3 positional arguments and return the result");
  expect(prompt).not.toContain(texts.stdin);
});

test("one user message by default; systemRole moves the role sentence into a system message", () => {
  const problem = { question: "Print 1." };
  expect(buildMessages(problem)).toEqual([{ role: "user", content: buildQuestion(problem) }]);
  const [system, user] = buildMessages(problem, { systemRole: true });
  expect(system).toEqual({ role: "system", content: texts.role });
  expect(`${system?.content}\n\n${user?.content}`).toBe(buildQuestion(problem));
});

test("another language is named, with its comment, its fence and what runs it", () => {
  const prompt = buildQuestion({ question: "Print the sum.", languages: ["typescript"] });
  expect(prompt).toMatch(/^You are an expert TypeScript programmer\. .* a correct TypeScript program /);
  expect(prompt).toContain(`### Format: ${texts.stdin} It is run by Node.\n\`\`\`typescript\n// YOUR`);
});

test("of several languages the answer chooses one and names it in its fence", () => {
  const prompt = buildQuestion({ question: "Print the sum.", languages: ["python", "javascript"] });
  expect(prompt).toMatch(/^You are an expert programmer\. .* a correct program /);
  expect(prompt).toContain("in place of LANGUAGE: python, javascript. JavaScript: It is run by Node.\n```LANGUAGE\n");
});

test("a template file replaces the wording and changes the hash", () => {
  const file = join(folder, "mine.json");
  writeFileSync(file, JSON.stringify({ ...texts, role: "You are an expert Python programmer. Be brief." }));
  const template = readQuestionTemplate(file);
  expect(buildQuestion({ question: "Q" }, { template })).toMatch(
    /^You are an expert Python programmer\. Be brief\.\n\nQ\n/,
  );
  expect(questionTemplateHash(template)).not.toBe(questionTemplateHash());
  expect(questionTemplateHash({ ...texts })).toBe(questionTemplateHash());
});

test("a template with a missing or unknown text is refused by name", () => {
  const file = join(folder, "bad.json");
  writeFileSync(file, JSON.stringify({ ...texts, stdin: undefined, tail: "x" }));
  expect(() => readQuestionTemplate(file)).toThrow(/bad\.json.*(stdin|tail)/s);
});
