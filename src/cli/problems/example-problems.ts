// The problems of `./whet init`: exercises that the bundled model can learn, one of each kind of test.

interface ExampleProblem {
  id: string;
  question: string;
  /** What an answer begins with: the bundled model knows functions only by it. */
  starter_code?: string;
  tests: { fn_name?: string; inputs: unknown[]; outputs: unknown[] };
  solutions: string[];
}

const program = (id: string, question: string, solution: string, cases: [input: string, output: string][]) => ({
  id,
  question,
  tests: { inputs: cases.map(([input]) => `${input}\n`), outputs: cases.map(([, output]) => `${output}\n`) },
  solutions: [solution],
});

const callable = (id: string, question: string, solution: string, cases: [args: unknown[], result: unknown][]) => ({
  id,
  question,
  starter_code: `${solution.split("\n", 1)[0]!}\n    pass`,
  tests: { fn_name: "result", inputs: cases.map(([args]) => args), outputs: cases.map(([, result]) => result) },
  solutions: [solution],
});

const numbers = "a = [int(x) for x in input().split()]\n";

export const exampleProblems: Readonly<Record<"train" | "test", readonly ExampleProblem[]>> = {
  train: [
    program("sum", "A line holds integers. Print the sum of the numbers.", `${numbers}print(sum(a))`, [
      ["3 4 5", "12"],
      ["10 -4", "6"],
      ["7", "7"],
      ["-2 -9 1 30", "20"],
    ]),
    program("count-words", "A line holds several words. Print the number of words.", "print(len(input().split()))", [
      ["owl", "1"],
      ["the quick brown fox", "4"],
      ["ant bee cat", "3"],
      ["a b c d e f g", "7"],
    ]),
    program(
      "over-four",
      "A line holds integers. Keep only the numbers over 4. Print the sum of the numbers.",
      `${numbers}print(sum([x for x in a if x > 4]))`,
      [
        ["1 4", "0"],
        ["9 12 3", "21"],
        ["5", "5"],
        ["-8 40 6", "46"],
      ],
    ),
    callable(
      "triple",
      "You are given a list a of integers. Make each number 3 times as large. Return the resulting list.",
      "def result(a):\n    return [x * 3 for x in a]",
      [
        [[[1, 2, 3]], [3, 6, 9]],
        [[[]], []],
        [[[-5, 10]], [-15, 30]],
        [[[7, 7]], [21, 21]],
      ],
    ),
    callable(
      "last-words",
      "The argument w is a list of words. Keep only the last 2 words. Return the number of words.",
      "def result(w):\n    return len(w[-2:])",
      [
        [[["owl"]], 1],
        [[["yak", "elk", "jay"]], 2],
        [[[]], 0],
        [[["a", "b"]], 2],
      ],
    ),
  ],
  test: [
    program("maximum", "A line holds integers. Print the maximum of the numbers.", `${numbers}print(max(a))`, [
      ["3 9 5", "9"],
      ["-4 -8", "-4"],
      ["7", "7"],
      ["2 30 11", "30"],
    ]),
    callable(
      "double",
      "You are given a list a of integers. Make each number 2 times as large. Return the resulting list.",
      "def result(a):\n    return [x * 2 for x in a]",
      [
        [[[1, 2, 3]], [2, 4, 6]],
        [[[]], []],
        [[[-5, 10]], [-10, 20]],
        [[[7]], [14]],
      ],
    ),
  ],
};
