// Trains an environment in a process of its own, so that it can be killed: `node FILE BASE_URL KEY NAME FOLDER CONFIG`, FILE as bundled.ts makes it.
import { environment, runTraining } from "whetstone/rl";
import { ServiceClient } from "whetstone/tinker";
import { exercises } from "./exercises.ts";
import { numbers, toolRenderer, tools } from "./tool-user.ts";

/** What is trained, by name. */
const environments = {
  /** Tools, run as the model calls them, and calls that cannot be read corrected. */
  tools: environment({
    problems: numbers,
    testProblems: numbers.slice(0, 2),
    tools,
    maxTurns: 4,
    reward: ({ text, problem }) => Number(text.trim() === `${2 * problem.secret}`) + 0.01 * text.length,
  }),
  /** Feedback on a wrong program, up to three times, with side effects and chance: like a repair. */
  repair: environment({
    problems: exercises,
    testProblems: exercises.slice(0, 2),
    maxTurns: 3,
    async run({ problem, chat, random, once, log }) {
      const bonus = 0.1 * random();
      let turn = 0;
      for await (const { text } of chat) {
        const length = await once(`length ${turn++}`, () => text.length);
        log("length", length);
        if (text.includes(`>= ${problem.least}`) && turn > 1) return 1 + bonus + 0.001 * length;
        chat.user(`Wrong for ${Math.floor(1000 * random())}. Write it again.`);
      }
      return bonus;
    },
  }),
  /** Chance that no seed knows: what it says is another thing each time. */
  chance: environment({
    problems: exercises,
    maxTurns: 3,
    async run({ chat }) {
      let sum = 0;
      for await (const { text } of chat) {
        sum += text.length;
        chat.user(`Once more, with ${Math.random()}.`);
      }
      return sum;
    },
  }),
};
export type EnvironmentName = keyof typeof environments;

const [baseUrl, apiKey, name, folder, config] = process.argv.slice(2);
const service = new ServiceClient({ baseUrl: baseUrl!, apiKey: apiKey! });
await runTraining({
  service,
  environment: environments[name as EnvironmentName] as (typeof environments)["repair"],
  ...(name === "tools" && { renderer: await toolRenderer(folder!) }),
  config: JSON.parse(config!) as object,
});
await service.close();
