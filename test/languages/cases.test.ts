// The judged cases that read stdin, translated by table: what the Python program printed and how it ended for each input is what a program in another
// language prints and how it ends. The verdict has to be the same. Every tenth by default; WHET_LANGUAGES=1 translates all.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LanguageName, languageNames, toolsOf } from "../../src/core/languages/languages.ts";
import { createGrader, normalizeTests } from "../../src/grading/index.ts";
import { type Jail, openJail } from "../../src/sandbox/jail.ts";
import { defaultLimits, type TestOutcome } from "../../src/sandbox/sandbox.ts";
import { casesAreThere, gradingCases } from "../grading/shared.ts";

const step = process.env["WHET_LANGUAGES"] === undefined ? 10 : 1;
const cases = gradingCases()
  .cases.filter(({ kind, expect: wanted, code }) => kind === "stdin" && wanted !== "either" && !code.includes("numpy"))
  .filter((_, index) => index % step === 0);
const limits = { ...defaultLimits, memoryBytes: 1024 ** 3, wallMs: 3_000, cpuMs: 4_000 };
/** What the cases were judged with; one sleeps 3 s. */
const judged = { ...limits, wallMs: 2_250 };
const longest = 200_000;

type Ends = Record<"endless" | "hungry" | "talkative" | "broken" | "failing", string> & { print(text: string): string };
interface Translator {
  table(rows: readonly { input: string; how: string }[]): string;
  ends: Ends;
}

const js: Translator = {
  ends: {
    endless: "for (;;);",
    hungry: "const all = []; for (;;) all.push(new Uint8Array(1 << 24).fill(1));",
    talkative: 'for (;;) fs.writeSync(1, "x".repeat(1 << 20));',
    failing: "process.exit(3);",
    broken: "let = ;",
    print: (text) => `put(Buffer.from(${JSON.stringify(text)}, "base64"));`,
  },
  table: (rows) =>
    [
      'const fs = require("fs");\nconst input = fs.readFileSync(0, "utf8");',
      "const put = (bytes) => { for (let at = 0; at < bytes.length; ) at += fs.writeSync(1, bytes, at); };",
      ...rows.map(({ input, how }) => `if (input === ${JSON.stringify(input)}) { ${how} }`),
    ].join("\n"),
};
const ts: Translator = {
  ...js,
  table: (rows) =>
    js
      .table(rows)
      .replace('const fs = require("fs");', 'import * as fs from "fs";\nenum Unused { Member }')
      .replace("(bytes) =>", "(bytes: Uint8Array): void =>"),
};
const cQuote = (bytes: Buffer) =>
  `std::string("${[...bytes].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("")}", ${bytes.length})`;
const cpp: Translator = {
  ends: {
    endless: "for (volatile int n = 0;; n++);",
    hungry: "for (;;) memset(malloc(1 << 24), 1, 1 << 24);",
    talkative: "for (;;) std::cout << std::string(1 << 20, 120);",
    failing: "return 3;",
    broken: "int = ;",
    print: (text) => `std::cout << ${cQuote(Buffer.from(text, "base64"))};`,
  },
  table: (rows) =>
    `#include <bits/stdc++.h>\nint main() {\nstd::string input{std::istreambuf_iterator<char>(std::cin), {}};\n${rows
      .map(({ input, how }) => `if (input == ${cQuote(Buffer.from(input))}) { ${how} }`)
      .join("\n")}\nstd::cout.flush();\n}`,
};
const translators = { javascript: js, typescript: ts, cpp } satisfies Partial<Record<LanguageName, Translator>>;

function endOf({ ends }: Translator, { status, stdout, exitCode }: TestOutcome): string {
  if (status === "compile-error") return ends.broken;
  if (status === "time-limit") return ends.endless;
  if (status === "memory-limit") return ends.hungry;
  if (status === "output-limit") return ends.talkative;
  const printed = ends.print(Buffer.from(stdout).toString("base64"));
  return status === "finished" && exitCode === 0 ? printed : `${printed} ${ends.failing}`;
}

describe.skipIf(!casesAreThere)("judged cases in other languages", () => {
  let jail: Jail;
  beforeAll(async () => {
    jail = await openJail({ levels: ["jail"], slots: 2 });
  }, 60_000);
  afterAll(() => jail.close());

  test.each(Object.keys(translators) as (keyof typeof translators)[])("%s", { timeout: 900_000 }, async (language) => {
    if (typeof (await toolsOf(language)) === "string") return expect(languageNames).toContain(language);
    const grader = createGrader({ sandbox: jail, limits: { ...limits, rewardTimeoutS: 3 } });
    const got = await Promise.all(
      cases.map(async ({ id, tests, code, expect: wanted }) => {
        const normalized = normalizeTests(tests.map((one) => ({ ...one, testtype: "stdin" }))).tests;
        const inputs = normalized.flatMap((one) =>
          one.kind === "stdin" ? [{ kind: "stdin", stdin: one.input } as const] : [],
        );
        const outcomes = await jail.run(
          { source: code, tests: inputs, limits: judged, preamble: true },
          () => "continue",
        );
        if (outcomes.some(({ stdout, status }) => stdout.length > longest && status === "finished"))
          return `${id}: ${wanted}`;
        const translator = translators[language];
        const ends = new Map(outcomes.map((outcome, index) => [inputs[index]!.stdin, endOf(translator, outcome)]));
        const rows = [...ends].map(([input, how]) => ({ input, how }));
        const result = await grader.grade({
          problem: { tests: normalized, languages: [language] },
          code: translator.table(rows),
        });
        return `${id}: ${result.verdict}${result.verdict === wanted ? "" : ` (${result.status}) ${result.failure?.stderr}`}`;
      }),
    );
    expect(got).toEqual(cases.map(({ id, expect: wanted }) => `${id}: ${wanted}`));
    return undefined;
  });
});
