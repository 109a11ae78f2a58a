// A reward function that has no judgement: the run ends by saying whose function it is, and goes on when it judges again.
import { join } from "node:path";
import { expect, test } from "vitest";
import { diagnose } from "../../src/diagnosis/diagnosis.ts";
import { readableRun, readBatch } from "../../src/runs/batch.ts";
import { eventsOf, loopRig, newFolder } from "../support/loop-rig.ts";

test("who has no sandbox is not sent to one", async () => {
  const rig = await loopRig();
  const path = join(newFolder(), "run");
  let isDown = true;
  const reward = ({ tokens }: { tokens: Int32Array }) => (isDown ? null : tokens.length % 2);
  const failed = await rig.train(path, { reward }).catch((error: Error) => error);
  expect(failed).toMatchObject({
    code: "rl/no-reward",
    message: expect.stringMatching(
      /^There is no reward for 100% of the completions of step 0: the function returned null\. .* run the same again/,
    ),
  });
  const [found] = diagnose(path, eventsOf(path), Date.now()).filter(({ finding }) => finding.level === "error");
  expect(found!.finding).toMatchObject({ id: "reward-missing" });
  expect(JSON.stringify(found)).not.toMatch(/sandbox|doctor/);
  isDown = false;
  expect(await rig.train(path, { reward })).toMatchObject({ step: 6, interrupted: false });
  // Judged at last, and counted once.
  const run = readableRun(path);
  const groups = run.view.steps.flatMap(({ step }) => readBatch(run, "train", step).groups);
  expect(groups).toHaveLength(24);
  for (const { sampled, graded, judged } of groups) {
    expect(judged!.graded).toBe(sampled.samples.length);
    expect(graded.map((event) => event?.grade.verdict)).not.toContain("ungraded");
    expect(graded).toHaveLength(sampled.samples.length);
  }
});
