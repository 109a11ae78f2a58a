// Rules about what a run uses up: data, time, checkpoints, the disk.
import { carryPaces, paceOf, updateTimes } from "../pace.ts";
import { evidenceOf, harm, meanOf, medianOf, percent, type Rule, short, spanOf, valuesOf } from "../rule.ts";

const repeated: Rule = {
  id: "data-repeated",
  levels: ["note", "warning"],
  when: "every problem was met once and they come again; warning when one comes twice in one step",
  means:
    "the data are used up: what follows is learned from problems that were seen before, and rewards say less about new ones",
  remedy: "add problems, or end here and compare evaluations",
  check(evidence) {
    const epoch = evidence.steps.at(-1)?.figures["data/epoch"] ?? 0;
    const [problems, prompts] = [evidence.setting("train_problems", 0), evidence.setting("prompts_per_step", 0)];
    const twice = problems > 0 && prompts > problems && evidence.steps.length > 0;
    if (epoch < 1 && !twice) return undefined;
    return {
      level: twice ? "warning" : "note",
      message: twice
        ? `a step takes ${prompts} problems, and there are ${problems}`
        : `each of the ${problems} training problems was met, and they come again`,
      steps: [evidence.step, evidence.step],
      figures: evidenceOf(evidence.last(1), "data/epoch"),
    };
  },
};

const overlap: Rule = {
  id: "train-test-overlap",
  levels: ["warning", "error"],
  when: "a test problem is a training problem too (same id or same statement); error from 10% of the test problems on",
  means: "Pass@1 measures what was trained on, not what was learned",
  remedy: "leave them out of the training data (blocked_ids=…)",
  check(evidence) {
    const shared = evidence.config["train_test_overlap"];
    const tests = evidence.setting("eval_problems", 0);
    if (typeof shared !== "number" || shared === 0 || tests === 0) return undefined;
    return {
      level: shared >= 0.1 * tests ? "error" : "warning",
      message: `${shared} of the test problems are training problems too (${tests} are evaluated)`,
      figures: [
        { name: "train_test_overlap", value: shared },
        { name: "eval_problems", value: tests },
      ],
    };
  },
};

/** What tail=carry waits for unless told otherwise. */
const usualShare = 0.75;

const tail: Rule = {
  id: "long-tail",
  levels: ["note"],
  when: "with tail=wait, over 10 steps more than a fifth of the time is spent waiting for the last quarter of a step's groups; not on the embedded engine, where sampler and trainer share the machine",
  means: "a few long answers hold up every step: trainer and samplers wait for them",
  remedy:
    "set tail=carry: a step is trained on as soon as three quarters of its groups are done, the others with the next one (one version older: with max_lag=2 that wants loss_fn=ppo), or, where that makes yet more steps, with carry_rounds=true; or a smaller max_tokens",
  check(evidence) {
    const { engine, tail: is, fill_batch, frozen_samplers, max_steps } = evidence.config;
    const steps = evidence.last(10, "pipeline/tail_frac");
    const cost = meanOf(steps, "pipeline/tail_frac");
    if (steps.length < 10 || !(cost > 0.2) || engine === "embedded" || fill_batch === true) return undefined;
    if (is === "carry" || frozen_samplers === false || evidence.step + 1 === max_steps) return undefined;
    const lag = evidence.setting("max_lag", 0);
    const { once, rounds, inRounds } = carryPaces(evidence.times, lag, usualShare);
    const waiting = paceOf(updateTimes(evidence.times, lag), lag);
    const [gain, inRoundsGain] = [waiting / once, waiting / rounds];
    if (!(Math.max(gain, inRoundsGain) > 1.05)) return undefined;
    const withRounds = lag > 0 ? `, in rounds (carry_rounds=true) ${inRoundsGain.toFixed(2)} times` : "";
    return {
      level: "note",
      message: `${percent(cost)} of the time is spent waiting for the last quarter of a step's groups; from these steps' own times, tail=carry would make ${gain.toFixed(2)} times as many${withRounds}`,
      steps: spanOf(steps),
      figures: [
        ...evidenceOf(steps.slice(-1), "pipeline/tail_frac"),
        { name: "steps with tail=carry", value: gain },
        ...(lag > 0 ? [{ name: "steps with carry_rounds=true", value: inRoundsGain }] : []),
      ],
      command: evidence.command("resume", "tail=carry", ...(inRounds ? ["carry_rounds=true"] : [])),
    };
  },
};

const longEvaluation: Rule = {
  id: "evaluation-long",
  levels: ["note"],
  when: "an evaluation takes more than a minute, and longer than half of the steps until the next one",
  means:
    "evaluations use up what the steps beside them need; the longest answers, up to eval_max_tokens, decide how long",
  remedy: "set a smaller eval_max_tokens or eval_max_problems, or a larger eval_every",
  check(evidence) {
    const newest = evidence.evaluations.findLast(({ figures }) => figures["time/evaluate"] !== undefined);
    const every = evidence.setting("eval_every", 0);
    const steps = evidence.last(10, "time/total");
    if (!newest || every <= 0 || steps.length < 5) return undefined;
    const seconds = newest.figures["time/evaluate"]!;
    const between = every * medianOf(valuesOf(steps, "time/total"));
    if (seconds < 60 || seconds <= 0.5 * between) return undefined;
    const tokens = evidence.setting("eval_max_tokens", 0) || evidence.setting("max_tokens", 0);
    const cut = newest.figures["eval/truncated_rate"] ?? 0;
    const answers = `answers of up to ${tokens} tokens${cut > 0 ? `, ${percent(cut)} of them cut there` : ""}`;
    return {
      level: "note",
      message: `an evaluation takes ${short(seconds)} s, the ${every} steps until the next one ${short(between)} s: ${answers}`,
      steps: [newest.step, evidence.step],
      figures: [
        ...evidenceOf([newest], "time/evaluate", "eval/truncated_rate"),
        { name: "eval_max_tokens", value: tokens },
      ],
    };
  },
};

const starved: Rule = {
  id: "stage-starves",
  levels: ["note"],
  symptomOf: [...harm, "slow-grading", "groups-equal", "long-tail"],
  when: "with max_lag, over 10 steps the trainer waits 70% of the time for answers, or the sampler 70% for updates",
  means: "one stage holds up the other: the step is as slow as the slower of the two",
  remedy: "give the slower stage more room: more samplers, shorter answers, a faster trainer",
  check(evidence) {
    const steps = evidence.last(10);
    // Without a lag the stages take turns: each waits for the other, whatever the machine.
    if (steps.length < 10 || evidence.setting("max_lag", 0) === 0) return undefined;
    const [train, sample] = [meanOf(steps, "pipeline/train_idle_frac"), meanOf(steps, "pipeline/sample_idle_frac")];
    const trainerWaits = train >= 0.7;
    if (!trainerWaits && !(sample >= 0.7)) return undefined;
    return {
      level: "note",
      message: trainerWaits
        ? `the trainer waits ${percent(train)} of the time for answers`
        : `the sampler waits ${percent(sample)} of the time for updates`,
      steps: spanOf(steps),
      figures: evidenceOf(
        steps.slice(-1),
        "pipeline/train_idle_frac",
        "pipeline/sample_idle_frac",
        "pipeline/bound_ratio",
      ),
    };
  },
};

const expiring: Rule = {
  id: "checkpoint-expiring",
  levels: ["warning", "error"],
  when: "a quarter of the life of the newest checkpoint is left, at most a day, and no newer one is due before; error when it is over",
  means: "the server deletes checkpoints after ttl_seconds; without one the run cannot be resumed",
  remedy: "save now, or resume the run before that; set ttl_seconds=0 or higher for the next one",
  check(evidence) {
    const newest = evidence.checkpoints.at(-1);
    if (!newest?.saved_at || newest.ttl_seconds === undefined || newest.final) return undefined;
    const life = newest.ttl_seconds * 1000;
    const left = Date.parse(newest.saved_at) + life - evidence.now;
    if (left > Math.min(life / 4, 24 * 3600_000)) return undefined;
    const hours = Math.abs(left) / 3600_000;
    const span = hours >= 1 ? `${short(hours)} hours` : `${short(Math.abs(left) / 1000)} s`;
    return {
      level: left <= 0 ? "error" : "warning",
      message:
        left <= 0
          ? `the newest checkpoint (${newest.name}) expired ${span} ago`
          : `the newest checkpoint (${newest.name}) expires in ${span}`,
      steps: [newest.step, Math.max(newest.step, evidence.step)],
      figures: [
        { name: "ttl_seconds", value: newest.ttl_seconds },
        { name: "seconds left", value: Math.round(left / 1000) },
      ],
      command: evidence.command("control", "save"),
    };
  },
};

const disk: Rule = {
  id: "disk-filling",
  levels: ["warning", "error"],
  when: "less than 512 MiB are free where the run is written, or less than what the steps to come will need at this pace; error below 128 MiB",
  means: "the run will end when the disk is full (nothing is lost: it resumes once there is room)",
  remedy:
    "free some space; keep_journal=checkpoint drops tokens of steps before the newest checkpoint; prune checkpoints",
  check(evidence) {
    const steps = evidence.last(10, "journal/disk_free");
    const free = valuesOf(steps, "journal/disk_free").at(-1);
    if (free === undefined) return undefined;
    const [first, last] = [steps[0]!, steps.at(-1)!];
    const used = (first.figures["journal/disk_free"] ?? 0) - free;
    const perStep = steps.length > 1 ? Math.max(0, used / (last.step - first.step)) : 0;
    const left = evidence.setting("max_steps", -1) - 1 - evidence.step;
    // A pace that a few steps show is no forecast for thousands: only what is left of this run, and only near the end of the disk.
    const short512 = free < 512 * 2 ** 20;
    const runsOut = left > 0 && steps.length >= 10 && perStep * left > free && free < 8 * 2 ** 30;
    if (!short512 && !runsOut) return undefined;
    const mib = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
    return {
      level: free < 128 * 2 ** 20 ? "error" : "warning",
      message: `${mib(free)} are free${perStep > 0 ? `, ${mib(perStep)} less with every step` : ""}`,
      steps: spanOf(steps),
      figures: [
        ...evidenceOf([last], "journal/disk_free", "journal/bytes"),
        { name: "bytes per step", value: Math.round(perStep) },
      ],
      command: evidence.command("checkpoints"),
    };
  },
};

export const resourceRules: readonly Rule[] = [repeated, overlap, tail, longEvaluation, starved, expiring, disk];
