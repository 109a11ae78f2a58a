// Environments on the embedded engine: several turns become one sequence whose tokens are exactly those that were sampled, episodes end at
// their limits, and what is wrong with a module comes to a clear end.
import { expect, test } from "vitest";
import { environment } from "whetstone/rl";
import { readableRun, readBatch, turnTokens } from "../../src/runs/batch.ts";
import { loadTokenizer } from "../../src/tokenizer/index.ts";
import { eventsNamed, trainOn } from "../support/environment-runs.ts";
import { type Exercise, exercises } from "../support/exercises.ts";

const wellDone = ({ text, problem }: { text: string; problem: Exercise }) => Number(text.includes(`${problem.least}`));

test("turns become one sequence: the tokens sent are the path, and each sampled token is trained once", async () => {
  const talk = environment({
    problems: exercises,
    maxTurns: 3,
    async run({ problem, chat, random }) {
      let sum = 0;
      for await (const { text } of chat) {
        sum += wellDone({ text, problem }) + 0.01 * text.length + 0.1 * random();
        chat.user("Say it once more.");
      }
      return { reward: sum, metrics: { sum } };
    },
  });
  const { path, events } = await trainOn(talk);
  const turns = eventsNamed(events, "turn-sampled");
  const graded = eventsNamed(events, "graded");
  expect(graded).toHaveLength(8);
  expect(turns.length).toBeGreaterThan(4);
  expect(new Set(graded.map(({ grade }) => grade.episode?.stop))).toContain("max_turns");
  expect(graded.every(({ grade }) => grade.episode!.metrics["sum"] === grade.reward)).toBe(true);

  const run = readableRun(path);
  const batch = readBatch(run, "train", 0);
  const tokenizer = await loadTokenizer("nano-coder");
  let trained = 0;
  for (const group of batch.groups)
    for (const sample of group.judged!.trained) {
      const all = turnTokens(run, group, sample)!;
      for (const [index, turn] of all.entries()) {
        expect(turn.parent).toBe(index === 0 ? null : index - 1);
        if (index > 0)
          expect(tokenizer.decode(turn.context)).toBe(
            "\n<|im_start|>user\nSay it once more.<|im_end|>\n<|im_start|>assistant\n",
          );
        // The trainer, which saw the whole sequence, agrees with the sampler, which saw each prompt by itself.
        for (const [place, logprob] of turn.trainer!.entries()) expect(logprob).toBeCloseTo(turn.sampler[place]!, 4);
        trained += turn.tokens.length;
      }
    }
  const [done] = eventsNamed(events, "step-done");
  expect(done!.metrics["tokens/trained"]).toBe(trained);
  expect(Math.abs(done!.metrics["optim/kl_sample_train_v1"]!)).toBeLessThan(1e-6);
  expect(done!.metrics["n_datums"]).toBe(batch.groups.flatMap(({ judged }) => judged!.trained).length);
});
