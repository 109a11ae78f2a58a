// Rules about how a run ended: the errors that people meet, by the code the run wrote down.
import { whet } from "../../core/program.ts";
import { resumeCommand } from "../../runs/directory.ts";
import type { Evidence } from "../evidence.ts";
import { harm, lower, type Rule } from "../rule.ts";

/** A run that failed with one of these codes, or with words like these. */
interface FailureRule extends Pick<Rule, "id" | "symptomOf" | "when" | "means" | "remedy"> {
  codes: RegExp;
  words?: RegExp;
  command?: (evidence: Evidence) => string;
}

/** The first that fits says what happened. */
const failures: readonly FailureRule[] = [
  {
    id: "api-key-missing",
    codes: /^(config\/api-key|client\/(no-api-key|bad-api-key|unauthorized|credential-command)|cli\/key-refused)$/,
    when: "the server wants an API key, and there is none or it is refused",
    means: "TINKER_API_KEY is not set, or not valid for this server",
    remedy: 'export TINKER_API_KEY="…", or put it into .env',
    command: () => `${whet} doctor`,
  },
  {
    id: "sandbox-unreachable",
    codes: /^(rl\/sandbox-away|sandbox\/(fusion-unreachable|fusion-url|unavailable|lost|port))$/,
    when: "the sandbox cannot be reached, or the embedded jail cannot be started",
    means:
      "no Sandbox Fusion answers at sandbox_url (connection refused on port 8080: its container is not running), or this machine has no jail",
    remedy: "start the sandbox container, or leave sandbox_url and SANDBOX_URL out to use the embedded jail",
    command: () => `${whet} doctor`,
  },
  {
    id: "sandbox-errors",
    codes:
      /^(rl\/ungraded|cli\/grader-broken|sandbox\/(fusion-failed|fusion-refused|fusion-no-result|incomplete|no-python|packages))$/,
    symptomOf: ["ungraded-share"],
    when: "the sandbox answers, but with errors (SandboxError) or wrong verdicts",
    means: "its configuration or its resource limits are wrong: too little memory, too few processes, no Python",
    remedy: "check the sandbox's own configuration (sandbox_config/local.yaml of Sandbox Fusion) and log",
    command: () => `${whet} doctor`,
  },
  {
    id: "reward-missing",
    codes: /^rl\/(no-reward|bad-reward)$/,
    symptomOf: ["ungraded-share"],
    when: "a reward function of the program's own gave no verdict for more than 20% of a step, threw, or returned what is no reward",
    means: "the reward function, or a service that it asks, does not judge the answers",
    remedy: "see in the function why, and run the program again: the run goes on where this one ended",
  },
  {
    id: "renderer-unknown",
    codes: /^renderer\//,
    when: "the renderer's name is not known, or does not fit the model",
    means: "renderer_name is misspelled, or for another family of models",
    remedy: 'leave renderer_name out, or use "qwen3_instruct" for Qwen3 instruct models; the message lists the names',
    command: () => `${whet} models`,
  },
  {
    id: "out-of-memory",
    codes: /^engine\/(out-of-memory|worker-died)$/,
    words: /out of memory|\boom\b|bad_alloc|cannot allocate|heap limit/i,
    when: "sampling or training ran out of memory",
    means: "the answers are too long, or too many at once, for this machine or GPU",
    remedy: "reduce max_tokens or prompts_per_step",
    command: (evidence) =>
      evidence.again(`max_tokens=${Math.max(1, Math.floor(evidence.setting("max_tokens", 2) / 2))}`),
  },
  {
    id: "checkpoints-missing",
    codes: /^(rl\/checkpoints-gone|runs\/(no-journal|other-journal|corrupt-checkpoints|journal-damaged))$/,
    symptomOf: ["checkpoint-expiring"],
    when: "a run cannot be resumed: its checkpoints, its journal or its records are missing or damaged",
    means: "the wrong folder or server, expired checkpoints, or a damaged file",
    remedy: "check log_path and the server; the message says what is missing and what can be saved",
  },
  {
    id: "numbers-not-finite",
    codes: /^engine\/non-finite-(loss|gradient|logits)$/,
    words: /non-finite|overflowed|infinite or missing numbers|\bnan\b/i,
    symptomOf: harm,
    when: "the engine met infinite or missing numbers in loss, gradient or weights",
    means: "training diverged: the learning rate is too high",
    remedy: "reduce the learning rate; on_error=rollback goes back to a healthy checkpoint by itself",
    command: lower,
  },
  {
    id: "server-unreachable",
    codes: /^(client\/(connection|timeout|server-error|busy|billing)|cli\/embedded-server(-lost)?|rl\/stuck)$/,
    when: "the Tinker server does not answer, or a stage made no progress for twice stage_deadline",
    means: "the server is down, overloaded, or out of reach",
    remedy: "check it, then resume the run: it goes on where this one ended",
    command: ({ runPath }) => resumeCommand(runPath),
  },
  {
    id: "disk-full",
    codes: /^(runs\/(write-failed|no-space)|engine\/(disk-full|save-failed))$/,
    words: /ENOSPC|no space left/i,
    symptomOf: ["disk-filling"],
    when: "the run's directory or a checkpoint could not be written",
    means: "the disk is full, or was taken away",
    remedy: "free some space, then resume the run: nothing is lost",
    command: ({ runPath }) => resumeCommand(runPath),
  },
  {
    id: "settings-refused",
    codes: /^(config|data|hub|tokenizer)\/|^cli\/model-(not-offered|not-here|too-large)$/,
    when: "a setting, the data or the model was refused before training began",
    means: "the command line or the data are not as they should be; keys are written key=value",
    remedy: "the message names the key and what it takes",
    command: () => `${whet} train --help`,
  },
  {
    id: "failed",
    codes: /^/,
    when: "the run ended with any other error",
    means: "the message says what happened",
    remedy: "do what the message says, then resume the run: it goes on where this one ended",
    command: ({ runPath }) => resumeCommand(runPath),
  },
];

/** The run was stopped by what was found in it (on_error=stop): that is reported, not how it stopped. */
const stoppedByFinding = "rl/diagnosed";

/** What became of a run that failed. */
function failureOf({ end }: Evidence): FailureRule | undefined {
  const { outcome, code = "", error = "" } = end ?? {};
  if (outcome !== "failed" || code === stoppedByFinding) return undefined;
  return failures.find(({ codes, words }) => codes.test(code) || words?.test(error));
}

export const failureRules: readonly Rule[] = failures.map((failure) => {
  const { codes: _, words: __, command, ...rule } = failure;
  return {
    ...rule,
    levels: ["error"],
    aboutEnd: true,
    check(evidence) {
      if (failureOf(evidence) !== failure) return undefined;
      const { error = "no message", code } = evidence.end!;
      return {
        level: "error",
        message: `the run ended with an error: ${error.slice(0, 500)}${code === undefined ? "" : ` [${code}]`}`,
        figures: [],
        ...(command && { command: command(evidence) }),
      };
    },
  };
});
