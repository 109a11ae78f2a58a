// ./whet train env=examples/judge.ts: answers to one problem are judged together, so that a reward can be a rank. Here the shorter program wins;
// a judge that asks a larger model to compare them stands in the same place.
import { buildMessages } from "whetstone/data";
import { environment } from "whetstone/rl";

export default environment({
  problems: Array.from({ length: 40 }, (_, least) => ({
    id: `keep-${least}`,
    prompt: buildMessages({
      question: `You are given a list a of integers. Keep only the numbers that are at least ${least}. Return the resulting list.`,
    }),
  })),
  rewardGroup(endings) {
    const lengths = endings.map(({ text }) => (text.includes("```python") ? text.length : Number.POSITIVE_INFINITY));
    return lengths.map((own) => lengths.filter((other) => own < other).length / lengths.length);
  },
});
