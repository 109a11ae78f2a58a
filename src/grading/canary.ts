// The canary: programs whose verdicts are known, graded at the start of a run and now and then, so that a broken or fooled grader
// stops the run before anything is learned from it.
import { type LanguageName, languageOf } from "../core/languages/languages.ts";
import type { GradeRequest, Grader } from "./grade.ts";
import { type NormalizedTest, normalizeTests } from "./normalize.ts";

interface CanaryProgram {
  name: string;
  mode: "stdin" | "call" | "wrong";
  /** Default Python. */
  language?: LanguageName;
  code: string;
  wanted: "pass" | "fail";
}

/** Add two numbers: the sum of a line's integers, and f(a, b). */
const problems: Record<CanaryProgram["mode"], readonly NormalizedTest[]> = {
  stdin: normalizeTests({
    inputs: ["17 25\n", "-4 90071992547409931\n"],
    outputs: ["42\n", "90071992547409927\n"],
  }).tests,
  wrong: normalizeTests({ inputs: ["17 25\n"], outputs: ["43\n"] }).tests,
  call: normalizeTests({
    fn_name: "f",
    inputs: [
      [17, 25],
      [-4, 4],
      ["a", "b"],
    ],
    outputs: [[42], [0], ["ab"]],
  }).tests,
};

const programs: readonly CanaryProgram[] = [
  { name: "input", mode: "stdin", wanted: "pass", code: "a, b = map(int, input().split())\nprint(a + b)" },
  {
    name: "stdin buffer",
    mode: "stdin",
    wanted: "pass",
    code: "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))",
  },
  { name: "open(0)", mode: "stdin", wanted: "pass", code: "print(sum(map(int, open(0).read().split())))" },
  {
    name: "raw write",
    mode: "stdin",
    wanted: "pass",
    code: "import os\nos.write(1, str(sum(map(int, input().split()))).encode())",
  },
  { name: "exit()", mode: "stdin", wanted: "pass", code: "print(sum(map(int, input().split())))\nexit()" },
  {
    name: "main guard",
    mode: "stdin",
    wanted: "pass",
    code: "def main():\n    print(sum(map(int, input().split())))\nif __name__ == '__main__':\n    main()\nx = 1",
  },
  {
    name: "thread",
    mode: "stdin",
    wanted: "pass",
    code: "import threading\nthreading.Thread(target=lambda: print(sum(map(int, input().split())))).start()",
  },
  {
    name: "global",
    mode: "stdin",
    wanted: "pass",
    code: "total = 0\ndef go():\n    global total\n    total += sum(map(int, input().split()))\ngo()\nprint(total)",
  },
  { name: "function", mode: "call", wanted: "pass", code: "def f(a, b):\n    return a + b" },
  {
    name: "method",
    mode: "call",
    wanted: "pass",
    code: "class Solution:\n    def f(self, a, b):\n        return a + b",
  },
  { name: "exit at once", mode: "stdin", wanted: "fail", code: "import os\nos._exit(0)" },
  {
    name: "exit hook",
    mode: "stdin",
    wanted: "fail",
    code: "import atexit, os\natexit.register(lambda: os._exit(0))\nprint('wrong')",
  },
  {
    name: "right answer, failing status",
    mode: "stdin",
    wanted: "fail",
    code: "import sys\nprint(sum(map(int, input().split())))\nsys.exit(3)",
  },
  { name: "judge's words", mode: "stdin", wanted: "fail", code: "print('pass')\nprint('{\"status\": \"finished\"}')" },
  {
    name: "frames",
    mode: "stdin",
    wanted: "fail",
    code: "import sys\nframe = sys._getframe()\nwhile frame:\n    for value in list(frame.f_locals.values()):\n        if isinstance(value, dict) and 'expected' in value:\n            print(value['expected'])\n    frame = frame.f_back",
  },
  { name: "first answer only", mode: "stdin", wanted: "fail", code: "print(42)" },
  { name: "exit in the call", mode: "call", wanted: "fail", code: "import sys\ndef f(a, b):\n    sys.exit(0)" },
  {
    name: "always equal",
    mode: "call",
    wanted: "fail",
    code: "class Any(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\ndef f(a, b):\n    return Any(0)",
  },
  {
    name: "patched json",
    mode: "call",
    wanted: "fail",
    code: "import json\njson.dumps = lambda *a, **k: '42'\njson.loads = lambda *a, **k: 42\ndef f(a, b):\n    return 0",
  },
  {
    name: "lying repr",
    mode: "call",
    wanted: "fail",
    code: "class Lie(int):\n    def __repr__(self):\n        return '42'\n    __str__ = __repr__\ndef f(a, b):\n    return Lie(1)",
  },
];

/** What grading programs with known verdicts gave. */
export interface CanaryResult {
  /** How many programs were graded. */
  ran: number;
  /** Programs whose verdict is not the known one; empty when all is well. */
  surprises: string[];
}

/** In every language: one that adds two numbers, and the same where that is the wrong answer. */
const inLanguage = (language: LanguageName): CanaryProgram[] =>
  (["stdin", "wrong"] as const).map((mode) => ({
    ...{ name: `sum in ${languageOf(language).title}`, mode, language, code: languageOf(language).sum },
    wanted: mode === "stdin" ? "pass" : "fail",
  }));

/** Grades the canary programs, with those of further languages than Python. Rejects only when the signal aborts. */
export async function runCanary(
  grader: Grader,
  { languages = [], ...options }: { signal?: AbortSignal; languages?: readonly LanguageName[] } = {},
): Promise<CanaryResult> {
  const others = languages.filter((name) => name !== "python").flatMap(inLanguage);
  const results = await Promise.all(
    [...programs, ...others].map(async (program) => {
      const { mode, code, language = "python" } = program;
      const request: GradeRequest = { problem: { tests: problems[mode], languages: [language] }, code, fresh: true };
      return { program, result: await grader.grade(request, options) };
    }),
  );
  const surprises = results
    .filter(({ program, result }) => result.verdict !== program.wanted)
    .map(
      ({ program, result }) => `"${program.name}" must ${program.wanted} and got ${result.verdict} (${result.status})`,
    );
  return { ran: results.length, surprises };
}
