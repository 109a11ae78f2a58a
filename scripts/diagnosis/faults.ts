// Runs of the embedded engine with one fault each, and the findings that must appear.
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { RunView } from "../../src/runs/view.ts";
import { startServe } from "../../test/contract/serve-process.ts";
import { ownReward } from "./own-reward.ts";
import { echoTests, starter, write } from "./problems.ts";
import { train, whet } from "./whet.ts";

export interface Fault {
  /** Findings that must appear; empty: no warning may. */
  wants: readonly string[];
  /** Makes the run; says why it could not be made. */
  run(path: string): Promise<string | undefined>;
}

const fault = (wants: readonly string[], run: (path: string) => Promise<unknown>): Fault => ({
  wants,
  run: async (path) => {
    const skipped = await run(path);
    return typeof skipped === "string" ? skipped : undefined;
  },
});

const settings = (wants: readonly string[], given: Record<string, string | number | boolean>) =>
  fault(wants, (path) => train(path, given));

/** Unseen families of which the model solves nothing; some others it guesses from one that it knows. */
const neverSolved = new Set(
  (
    "semicolon_numbers row_minima from_binary distance column_maxima every_kth_word every_kth_character keep_shorter longest_length " +
    "ends_of_words sum_without_largest count_capitals count_even keep_even digit_count keep_digits reverse_digits merge_sums dot digits"
  ).split(" "),
);

export const faults: Record<string, Fault> = {
  "learning-rate-40x": settings(
    ["collapse", "format-dropping", "truncated-answers", "reward-flat-zero", "groups-equal"],
    {
      learning_rate: 0.1,
      max_steps: 14,
    },
  ),
  "learning-rate-12x": settings(["collapse", "entropy-runaway"], { learning_rate: 0.03, max_steps: 10 }),
  "learning-rate-100": settings(["collapse"], { learning_rate: 100, max_steps: 6 }),
  "learning-rate-1e38": settings(["numbers-not-finite"], { learning_rate: 1e38, max_steps: 6 }),
  "lag-8-unclipped": settings(["lag-too-large"], { max_lag: 8, allow_unclipped: true, max_steps: 16 }),
  "lag-4-learning-rate-8x": settings(["lag-too-large", "flags-rising", "collapse", "entropy-runaway"], {
    max_lag: 4,
    allow_unclipped: true,
    learning_rate: 0.02,
    max_steps: 12,
  }),
  "wrong-renderer": settings(["format-low", "reward-flat-zero"], { renderer_name: "role_colon", max_steps: 6 }),
  "tiny-max-tokens": settings(["truncated-answers"], { max_tokens: 24, max_steps: 6 }),
  "too-hard": fault(["reward-flat-zero"], (path) => {
    const rows = starter("test").filter(({ part, family }) => part === "unseen" && neverSolved.has(String(family)));
    return train(path, { train_data: write(`${path}.jsonl`, rows), max_steps: 10 });
  }),
  "too-easy": fault(["reward-flat-one", "groups-equal"], async (path) => {
    // What the model solves before any training, at a temperature that leaves it no other answer.
    await train(`${path}.first`, { max_steps: 1, eval_every: 100, eval_max_problems: 150 });
    const outcomes = RunView.read(`${path}.first`).evaluations.get(0)?.outcomes ?? [];
    const solved = new Set(
      outcomes.filter(({ samples, passed }) => samples > 0 && passed === samples).map(({ id }) => id),
    );
    const rows = starter("test").filter(({ id }) => solved.has(id));
    await train(path, { train_data: write(`${path}.jsonl`, rows), temperature: 0.05, max_steps: 7 });
  }),
  "weak-tests": fault(["weak-tests", "reward-flat-zero", "groups-equal"], (path) =>
    train(path, { train_data: write(`${path}.jsonl`, echoTests(starter("train"))), max_steps: 12 }),
  ),
  "test-out-of-reach": fault(["reward-without-pass1"], (path) => {
    // What is trained on is learned, and what is measured is not.
    const rows = starter("test").filter(({ part, family }) => part === "unseen" && neverSolved.has(String(family)));
    return train(path, { test_data: write(`${path}.jsonl`, rows), max_steps: 14, eval_every: 14 });
  }),
  "endless-loops": fault(["timeouts-dominate"], async (path) => {
    const loops = starter("train").map((row) => ({ ...row, solutions: ["while True: pass"] }));
    const server = await startServe([
      "engine=simulated",
      "tokenizer=nano-coder",
      "model_name=nano-coder",
      "solve_rate=constant:0.7",
      `answers=${write(`${path}.jsonl`, loops)}`,
      `state_dir=${path}.state`,
    ]);
    try {
      await trainOn(server.apiKey, path, {
        base_url: server.baseUrl,
        preset: "nano",
        max_steps: 4,
        prompts_per_step: 4,
        completions_per_prompt: 8,
        reward_timeout: 0.5,
      });
    } finally {
      await server.close();
    }
  }),
  "dead-sandbox": settings(["sandbox-unreachable"], { sandbox_url: "http://127.0.0.1:9/run_code", max_steps: 2 }),
  "dead-server": fault(["server-unreachable"], (path) =>
    trainOn("tml-diagnosis", path, { base_url: "http://127.0.0.1:9", preset: "nano", max_steps: 2 }),
  ),
  "wrong-key": fault(["api-key-missing"], async (path) => {
    const server = await startServe([`state_dir=${path}.state`]);
    try {
      await trainOn("tml-another", path, { base_url: server.baseUrl, preset: "nano", max_steps: 2 });
    } finally {
      await server.close();
    }
  }),
  "unknown-renderer": settings(["renderer-unknown"], { renderer_name: "qwen3_instruckt", max_steps: 2 }),
  "other-seed-on-resume": fault(["settings-refused"], async (path) => {
    await train(path, { max_steps: 2, prompts_per_step: 4, completions_per_prompt: 4 });
    await train(path, { max_steps: 4, prompts_per_step: 4, completions_per_prompt: 4, seed: 5 });
  }),
  "checkpoints-deleted": fault(["checkpoints-missing"], async (path) => {
    await train(path, { max_steps: 2, prompts_per_step: 4, completions_per_prompt: 4 });
    rmSync(join(path, "engine"), { recursive: true });
    await train(path, { max_steps: 4, prompts_per_step: 4, completions_per_prompt: 4 });
  }),
  "few-problems": fault(["data-repeated"], (path) =>
    train(path, { train_data: write(`${path}.jsonl`, starter("train").slice(0, 8)), max_steps: 6 }),
  ),
  "train-is-test": settings(["train-test-overlap"], {
    train_data: "data/starter/test.jsonl",
    test_data: "data/starter/test.jsonl",
    eval_every: 100,
    eval_max_problems: 20,
    max_steps: 2,
  }),
  "short-lived-checkpoints": settings(["checkpoint-expiring"], { ttl_seconds: 6, save_every: 3, max_steps: 14 }),
  "small-disk": fault(["disk-filling"], (path) => onDisk(path, 400, 3)),
  "full-disk": fault(["disk-full"], (path) => onDisk(path, 36, 20)),
  "small-memory": fault(["out-of-memory"], async (path) => {
    // A control group that holds the model and not its training; the kernel kills what is largest, the engine.
    const group = "/sys/fs/cgroup/memory/whetstone-fault";
    if (!existsSync("/sys/fs/cgroup/memory")) return "there is no memory control group of the first version here";
    const script = `mkdir -p ${group} && echo 450m > ${group}/memory.limit_in_bytes && echo $$ > ${group}/cgroup.procs && exec "$0" "$@"`;
    await whet(["train", `log_path=${path}`, "max_steps=4", "eval_every=-1", "tensorboard=false"], {
      log: `${path}.log`,
      prefix: ["sh", "-c", script],
    });
    return undefined;
  }),
  "ungraded-answers": fault(["ungraded-share"], (path) => ownReward(path, { lose: 0.12, steps: 5 })),
  "slow-judge": fault(["slow-grading"], (path) => ownReward(path, { waitMs: 15_000, steps: 5 })),
  "one-answer": fault(["entropy-collapse"], (path) => ownReward(path, { alike: true, learningRate: 0.005, steps: 16 })),
  "failing-reward": fault(["reward-missing"], (path) => ownReward(path, { failAt: 2, steps: 4 })),
  "other-sampler": fault(["sampler-trainer-disagree"], (path) => ownReward(path, { shift: 0.5, steps: 4 })),
};

/** Trains against a server with this key. */
async function trainOn(key: string, path: string, given: Record<string, string | number | boolean>): Promise<void> {
  const all = { eval_every: -1, tensorboard: false, save_every: 5, ...given };
  await whet(["train", `log_path=${path}`, ...Object.entries(all).map(([name, value]) => `${name}=${value}`)], {
    log: `${path}.log`,
    env: { TINKER_API_KEY: key },
  });
}

/** Trains on a file system of so many MiB that only this run sees; the run is copied out before it is gone. */
async function onDisk(path: string, mebibytes: number, steps: number): Promise<string | undefined> {
  const script = `mkdir -p ${path}.disk && mount -t tmpfs -o size=${mebibytes}m tmpfs ${path}.disk || exit 99; "$0" "$@"; cp -r ${path}.disk/run ${path}`;
  const code = await whet(
    ["train", `log_path=${path}.disk/run`, `max_steps=${steps}`, "eval_every=-1", "tensorboard=false", "save_every=2"],
    { log: `${path}.log`, prefix: ["unshare", "-m", "sh", "-c", script] },
  );
  return code === 99 ? "mounting a file system is not allowed here" : undefined;
}
