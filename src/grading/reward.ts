// The reward of one answer, in one place: R = format_coef × format_score + correctness.

/** How verdicts become rewards. */
export interface RewardRules {
  /** Weight of the format score. */
  formatCoef: number;
  /** Correctness is the share of tests passed instead of all or nothing. Invites hard-coding of the easy tests. */
  fractional: boolean;
}

/** 1 for a pass, 0 for a fail, 0.1 less without code in the asked form. */
export const defaultRewardRules: RewardRules = { formatCoef: 0.1, fractional: false };

export interface Graded {
  verdict: "pass" | "fail" | "ungraded";
  formatOk: boolean;
  passed: number;
  total: number;
}

/** What the tests say: 1 for a pass; else 0, or the share of tests passed. */
export const correctnessOf = (
  { verdict, passed, total }: Pick<Graded, "verdict" | "passed" | "total">,
  fractional: boolean,
): number => (verdict === "pass" ? 1 : fractional && total > 0 ? passed / total : 0);

/** The reward, or null when there is no verdict: an outage teaches nothing. */
export function rewardOf(graded: Graded, rules: RewardRules = defaultRewardRules): number | null {
  if (graded.verdict === "ungraded") return null;
  const formatScore = graded.formatOk ? 0 : -1;
  // Adding 0 turns -0 into 0.
  return rules.formatCoef * formatScore + correctnessOf(graded, rules.fractional) + 0;
}
