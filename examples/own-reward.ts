// Trains on problems and a reward of one's own. The bundled model writes `x > 20` where "at least 20" is asked for; the reward below reads
// the answer and wants `>=`. Any Tinker server will do; this one has the bundled model:
//
//   npx whetstone serve port=8000 api_key=tml-local &
//   TINKER_BASE_URL=http://127.0.0.1:8000 TINKER_API_KEY=tml-local node own-reward.ts      (Node 22.18 or newer runs TypeScript)
import { buildMessages } from "whetstone/data";
import { type Reward, type RewardRequest, runTraining, type TrainingProblem } from "whetstone/rl";
import { ServiceClient } from "whetstone/tinker";

interface Threshold extends TrainingProblem {
  least: number;
}

const problems = Array.from({ length: 40 }, (_, index): Threshold => {
  const question = `You are given a list a of integers. Keep only the numbers that are at least ${index}. Return the resulting list.`;
  return { id: `at-least-${index}`, prompt: buildMessages({ question }), least: index };
});

function reward({ problem, text }: RewardRequest<Threshold>): Reward {
  const wellFormed = /^```python\n[^`]*```$/.test(text.trim());
  const correct = wellFormed && text.includes(`>= ${problem.least}]`);
  return { reward: (correct ? 1 : 0) - (wellFormed ? 0 : 0.1), correct, wellFormed };
}

const service = new ServiceClient();
const { path, step } = await runTraining({
  service,
  problems,
  reward,
  config: { preset: "nano", max_steps: 5, log_path: "own-reward" },
  onEvent(event) {
    if (event.type === "step-done")
      console.log(`step ${event.step + 1}: correct ${event.metrics["mean_correct"]!.toFixed(3)}`);
  },
});
console.log(`${step} steps; the run is ${path}`);
await service.close();
