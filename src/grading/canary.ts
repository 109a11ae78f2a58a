// The canary: programs whose verdicts are known, graded at the start of a run and now and then, so that a broken or fooled grader
// stops the run before anything is learned from it.
import { type LanguageName, languageOf } from "../core/languages/languages.ts";
import type { GradeRequest, Grader } from "./grade.ts";
import { type NormalizedTest, normalizeTests } from "./normalize.ts";

type Mode = "stdin" | "call" | "wrong";

interface CanaryProgram {
  name: string;
  mode: Mode;
  language: LanguageName;
  code: string;
  wanted: "pass" | "fail";
}

/** Add two numbers: the sum of a line's integers, and f(a, b). */
const problems: Record<Mode, readonly NormalizedTest[]> = {
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

const known = (
  wanted: CanaryProgram["wanted"],
  mode: Mode,
  programs: Record<string, string>,
  language: LanguageName = "python",
): CanaryProgram[] => Object.entries(programs).map(([name, code]) => ({ name, mode, language, code, wanted }));

const programs: readonly CanaryProgram[] = [
  ...known("pass", "stdin", {
    input: "a, b = map(int, input().split())\nprint(a + b)",
    "stdin buffer": "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))",
    "open(0)": "print(sum(map(int, open(0).read().split())))",
    "raw write": "import os\nos.write(1, str(sum(map(int, input().split()))).encode())",
    "exit()": "print(sum(map(int, input().split())))\nexit()",
    "main guard":
      "def main():\n    print(sum(map(int, input().split())))\nif __name__ == '__main__':\n    main()\nx = 1",
    thread: "import threading\nthreading.Thread(target=lambda: print(sum(map(int, input().split())))).start()",
    global: "total = 0\ndef go():\n    global total\n    total += sum(map(int, input().split()))\ngo()\nprint(total)",
  }),
  ...known("pass", "call", {
    function: "def f(a, b):\n    return a + b",
    method: "class Solution:\n    def f(self, a, b):\n        return a + b",
  }),
  ...known("fail", "stdin", {
    "exit at once": "import os\nos._exit(0)",
    "exit hook": "import atexit, os\natexit.register(lambda: os._exit(0))\nprint('wrong')",
    "right answer, failing status": "import sys\nprint(sum(map(int, input().split())))\nsys.exit(3)",
    "judge's words": "print('pass')\nprint('{\"status\": \"finished\"}')",
    frames:
      "import sys\nframe = sys._getframe()\nwhile frame:\n    for value in list(frame.f_locals.values()):\n        if isinstance(value, dict) and 'expected' in value:\n            print(value['expected'])\n    frame = frame.f_back",
    "first answer only": "print(42)",
  }),
  ...known("fail", "call", {
    "exit in the call": "import sys\ndef f(a, b):\n    sys.exit(0)",
    "always equal":
      "class Any(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\ndef f(a, b):\n    return Any(0)",
    "patched json":
      "import json\njson.dumps = lambda *a, **k: '42'\njson.loads = lambda *a, **k: 42\ndef f(a, b):\n    return 0",
    "lying repr":
      "class Lie(int):\n    def __repr__(self):\n        return '42'\n    __str__ = __repr__\ndef f(a, b):\n    return Lie(1)",
  }),
];

/** What grading programs with known verdicts gave. */
export interface CanaryResult {
  /** How many programs were graded. */
  ran: number;
  /** Programs whose verdict is not the known one; empty when all is well. */
  surprises: string[];
}

/** In every language: one that adds two numbers, and the same where that is the wrong answer. */
function inLanguage(language: LanguageName): CanaryProgram[] {
  const { title, sum } = languageOf(language);
  const program = { [`sum in ${title}`]: sum };
  return [...known("pass", "stdin", program, language), ...known("fail", "wrong", program, language)];
}

/** Grades the canary programs, with those of further languages than Python. Rejects only when the signal aborts. */
export async function runCanary(
  grader: Grader,
  { languages = [], ...options }: { signal?: AbortSignal; languages?: readonly LanguageName[] } = {},
): Promise<CanaryResult> {
  const others = languages.filter((name) => name !== "python").flatMap(inLanguage);
  const results = await Promise.all(
    [...programs, ...others].map(async (program) => {
      const { mode, code, language } = program;
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
