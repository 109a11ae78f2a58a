// `whetstone` alone: there is no main entry, and this says which there are.
import { ConfigError } from "./core/errors.ts";

/**
 * The entries of the package. `import … from "whetstone"` has nothing; take what you need from one of these:
 * `whetstone/rl` (the training loop), `whetstone/tinker` (the Tinker client), `whetstone/grading` (verdicts and rewards),
 * `whetstone/sandbox` (untrusted programs), `whetstone/data` (problems), `whetstone/renderers` and `whetstone/tokenizer`.
 */
export type Entry =
  | "whetstone/data"
  | "whetstone/grading"
  | "whetstone/renderers"
  | "whetstone/rl"
  | "whetstone/sandbox"
  | "whetstone/tinker"
  | "whetstone/tokenizer";

const entries: Readonly<Record<Entry, string>> = {
  "whetstone/rl": "the training loop, on problems and rewards of your own",
  "whetstone/tinker": "the Tinker client",
  "whetstone/grading": "verdicts and rewards",
  "whetstone/sandbox": "runs untrusted programs",
  "whetstone/data": "problems",
  "whetstone/renderers": "chat formats",
  "whetstone/tokenizer": "text and token ids",
};

throw new ConfigError(
  "config/no-main-entry",
  `"whetstone" has no main entry. Import one of these instead: ${Object.entries(entries)
    .map(([name, what]) => `${name} (${what})`)
    .join(", ")}.`,
);
