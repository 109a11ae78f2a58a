// Rules about episodes of several turns: where they end, what their tools do, what rewriting costs, whose time they take.
import { whet } from "../../core/program.ts";
import { evidenceOf, harm, meanOf, overMeans, percent, type Rule, short, spanOf, sumOf } from "../rule.ts";

/** The limits of an episode, with the setting that raises each. */
const limits = [
  { stop: "max_turns", setting: "max_turns", what: "turns or tool calls" },
  { stop: "context", setting: "context_window", what: "room in the context window" },
  { stop: "timeout", setting: "episode_timeout", what: "time" },
] as const;

const atLimit: Rule = {
  id: "episodes-at-limit",
  levels: ["warning"],
  symptomOf: [...harm, "truncated-answers"],
  when: "half of the episodes of three steps ran out of turns, of room in the context window, or of time",
  means:
    "most episodes end before the model is done, so their rewards say how short an episode is rather than how good",
  remedy: "raise the limit, or look at what the model does with its turns",
  check(evidence) {
    const steps = evidence.last(3, "episode/turns_mean");
    if (steps.length < 3) return undefined;
    const share = (stop: string) =>
      steps.reduce((sum, { figures }) => sum + (figures[`episode/stop/${stop}`] ?? 0), 0) / steps.length;
    const [worst] = limits.map((limit) => ({ ...limit, share: share(limit.stop) })).sort((a, b) => b.share - a.share);
    if (!(worst!.share >= 0.5)) return undefined;
    const { setting, what, stop } = worst!;
    const now = evidence.setting(setting, 0) || Math.ceil(meanOf(steps, "episode/turns_mean"));
    return {
      level: "warning",
      message: `${percent(worst!.share)} of the episodes ran out of ${what} (${short(meanOf(steps, "episode/turns_mean"))} turns on average)`,
      steps: spanOf(steps),
      figures: evidenceOf(steps, `episode/stop/${stop}`, "episode/turns_mean"),
      command: evidence.again(`${setting}=${2 * now}`),
    };
  },
};

const toolsFailing = overMeans({
  id: "tools-failing",
  levels: ["warning"],
  symptomOf: harm,
  when: "half of the tool calls of three steps gave an error",
  means: "the model calls tools that are not there or with what they do not take, or the tools themselves are broken",
  remedy: "look at the calls and at what they gave; say in a tool's description what it takes",
  over: 3,
  figures: ["episode/tool_error_rate", "episode/tool_calls_mean"],
  sees([rate], evidence) {
    if (!(rate! >= 0.5)) return undefined;
    return {
      level: "warning",
      message: `${percent(rate!)} of the tool calls gave an error`,
      command: evidence.command("show", `step=${evidence.step}`, "group=0", "sample=0"),
    };
  },
});

const rewriting = overMeans({
  id: "rewriting-dear",
  levels: ["note"],
  when: "the episodes of three steps are two sequences or more on average",
  means:
    "the chat format writes earlier turns otherwise once a conversation goes on, so most turns are trained on behind a context of their own: each is read again",
  remedy:
    "go on from the tokens that are there (history=keep: the model is then trained on what the format itself would not write), or turn thinking off (thinking=off)",
  over: 3,
  figures: ["episode/sequences_mean", "episode/rewrites_mean"],
  sees([sequences], evidence) {
    if (!(sequences! >= 2)) return undefined;
    return {
      level: "note",
      message: `an episode is ${short(sequences!)} sequences on average, as earlier turns are written anew`,
      command: evidence.again("history=keep"),
    };
  },
});

const environmentSlow: Rule = {
  id: "environment-slow",
  levels: ["note"],
  when: "over five steps the slow episodes spend half of the sampling time, and a second or more, in the environment's own code and tools",
  means: "the time is the environment's, not the model's: a faster sampler would not help",
  remedy: `make the environment or its tools faster, or let steps overlap (max_lag=1); ${whet} show says what an episode spent`,
  check(evidence) {
    const steps = evidence.last(5, "episode/own_time_p95");
    const [own, sampling] = [meanOf(steps, "episode/own_time_p95"), meanOf(steps, "time/sample")];
    if (steps.length < 5 || !(own >= 1 && own >= sampling / 2)) return undefined;
    return {
      level: "note",
      message: `a slow episode spends ${short(own)} s in the environment, and a step samples for ${short(sampling)} s`,
      steps: spanOf(steps),
      figures: evidenceOf(steps.slice(-1), "episode/own_time_p95", "time/sample"),
    };
  },
};

const diverges: Rule = {
  id: "environment-diverges",
  levels: ["note"],
  when: "an episode that was begun again after a restart asked for something else than before",
  means:
    "the environment has chance or a clock that the run does not know: the turns of its earlier beginning are paid for and trained on nowhere, and the same seed gives another run",
  remedy: "take chance from the episode's random(), and put what cannot be done twice into once()",
  check(evidence) {
    const steps = evidence.steps.filter(({ figures }) => (figures["episode/diverged"] ?? 0) > 0);
    if (steps.length === 0) return undefined;
    return {
      level: "note",
      message: `${sumOf(steps, "episode/diverged")} turns that were sampled before a restart were not asked for again`,
      steps: spanOf(steps),
      figures: evidenceOf(steps.slice(-8), "episode/diverged"),
    };
  },
};

export const episodeRules: readonly Rule[] = [atLimit, toolsFailing, rewriting, environmentSlow, diverges];
