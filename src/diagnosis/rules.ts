// The table of rules, in the order in which findings are shown. A rule costs one object in its file and `npm run docs`.
import type { Rule } from "./rule.ts";
import { agentRules } from "./rules/agents.ts";
import { episodeRules } from "./rules/episodes.ts";
import { failureRules } from "./rules/failures.ts";
import { gradingRules } from "./rules/grading.ts";
import { learningRules } from "./rules/learning.ts";
import { resourceRules } from "./rules/resources.ts";
import { rewardRules } from "./rules/reward.ts";

export const rules: readonly Rule[] = [
  ...failureRules,
  ...learningRules,
  ...rewardRules,
  ...gradingRules,
  ...agentRules,
  ...episodeRules,
  ...resourceRules,
];

/** Whether a rollback can cure what a finding says. */
export const isCurable = (id: string): boolean => rules.find((rule) => rule.id === id)?.curable ?? false;
