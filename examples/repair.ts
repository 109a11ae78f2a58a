// ./whet train env=examples/repair.ts: programs of one's own problems, corrected by what an example says. env=repair does it for every data set.
import { buildMessages } from "whetstone/data";
import { environment } from "whetstone/rl";

const problems = Array.from({ length: 40 }, (_, least) => ({
  id: `at-least-${least}`,
  prompt: buildMessages({
    question: `A line has integers. Print how many of them are at least ${least}.\n\nInput\n${least - 1} ${least} ${least + 1}\n\nOutput\n2\n`,
  }),
  tests: [
    { input: `${least - 1} ${least} ${least + 1}\n`, output: "2\n", testtype: "stdin" }, // the statement's own
    { input: `${least} ${least} ${least - 9}\n`, output: "2\n", testtype: "stdin" }, // nobody is shown this one
    { input: `${least - 2} ${least - 1}\n`, output: "0\n", testtype: "stdin" },
  ],
}));

export default environment({
  problems,
  maxTurns: 3,
  async run({ chat, grade, tryExamples, log }) {
    let verdict: Awaited<ReturnType<typeof grade>> | undefined;
    for await (const { text, turn } of chat) {
      verdict = await grade(text);
      if (turn === 1) log("first_correct", Number(verdict.correct));
      const tried = await tryExamples(text);
      if (tried?.failure) chat.user(`It printed ${tried.failure.printed}, not ${tried.failure.expected}. Correct it.`);
    }
    return verdict;
  },
});
