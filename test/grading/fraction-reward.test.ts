import { expect, test } from "vitest";
import { openGrader } from "../../src/cli/parts/grader.ts";
import { normalizeTests } from "../../src/grading/index.ts";
import { presetConfig } from "../../src/rl/config.ts";

const { tests } = normalizeTests(
  ["1", "2", "3", "4"].map((input) => ({ input, output: String(Number(input) ** 2), testtype: "stdin" })),
  { source: "own", metadata: {} },
);
const wrongAtFirst = "n = int(input())\nprint(0 if n == 1 else n * n)";

test.each([
  ["fraction", 0.75],
  ["all", 0],
] as const)("reward=%s: a program that fails the first of four tests is worth %d", async (reward, worth) => {
  const { grader, close } = await openGrader({ ...presetConfig("nano"), sandbox_url: "", reward });
  try {
    const problem = { id: "squares", tests };
    expect(await grader.grade({ problem, code: wrongAtFirst })).toMatchObject({ verdict: "fail", reward: worth });
    expect(await grader.grade({ problem, code: "print(int(input()) ** 2)" })).toMatchObject({ reward: 1 });
  } finally {
    await close();
  }
});
