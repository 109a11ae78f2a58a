// Grades three answers to one problem: the code is taken out of each, runs against hidden tests in a sandbox on this machine, and gets
// a verdict and a reward. The sandbox is the embedded jail, or Sandbox Fusion where SANDBOX_URL is set.
//
//   node grade-answers.ts      (Node 22.18 or newer runs TypeScript)
import { createGrader, normalizeTests, openSandbox } from "whetstone/grading";

const { tests } = normalizeTests({ inputs: ["3\n1 2 3\n", "2\n-5 5\n"], outputs: ["6\n", "0\n"] });
const problem = { id: "sum-of-numbers", tests };

const fenced = (code: string) => `Here it is:\n\`\`\`python\n${code}\n\`\`\``;
const answers = {
  right: fenced("input()\nprint(sum(map(int, input().split())))"),
  wrong: fenced("print(6)"),
  "without code": "I would add the numbers up.",
};

const sandbox = await openSandbox();
console.log(sandbox.description.summary);
try {
  const grader = createGrader({ sandbox });
  const grades = Object.values(answers).map((response) => grader.grade({ problem, response })); // all at once
  for (const [index, name] of Object.keys(answers).entries()) {
    const { verdict, reward, status } = await grades[index]!;
    console.log(`${name}: ${verdict} (${status}), reward ${reward}`);
  }
} finally {
  await sandbox.close();
}
