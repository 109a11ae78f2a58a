import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createGrader, normalizeTests } from "../grading/index.ts";
import { SandboxError } from "../sandbox/index.ts";
import { judgeByTests } from "./judge.ts";

test("how long a sandbox has been away counts from when it was first asked, not from when it first failed", async () => {
  let asked = 0;
  const sandbox = {
    description: { kind: "fusion", summary: "a sandbox that is slow to fail", programsAtOnce: 1 },
    async run(): Promise<never> {
      asked++;
      await sleep(80);
      throw new SandboxError("sandbox/fusion-failed", "nobody there");
    },
    close: () => Promise.resolve(),
  };
  const grader = createGrader({ sandbox: sandbox as unknown as Parameters<typeof createGrader>[0]["sandbox"] });
  const judge = judgeByTests({ grader, patienceMs: 100 });
  const { tests } = normalizeTests([{ input: "1\n", output: "2\n", testtype: "stdin" }]);
  const task = { id: "p", loadTests: () => Promise.resolve(tests) };
  const answer = { text: "```python\nprint(3)\n```", truncated: false };
  const judged = judge(task as never, answer as never, new AbortController().signal, { phase: "train" } as never);
  await expect(judged).rejects.toMatchObject({ code: "rl/sandbox-away" });
  // The answer's program, then one that is known: together they took longer than the patience.
  expect(asked).toBe(2);
});
