// docs/config.md, made from the schema: `node --import ./src/core/ts-loader.mjs src/cli/config-docs.ts` writes it, a test compares it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { completionsPerPrompt, presetConfig, presets } from "../rl/config.ts";
import { projectRoot } from "./environment.ts";
import { defaultOf } from "./options.ts";
import { TrainArguments, trainKeys } from "./train-config.ts";

export const configDocsPath = join(projectRoot, "docs", "config.md");

/** The whole page. */
export function configDocs(): string {
  const standard = presetConfig("deepcoder");
  const sizes: Partial<Record<string, unknown>> = {
    prompts_per_step: standard.group_size,
    completions_per_prompt: completionsPerPrompt(standard),
  };
  const rows = trainKeys.map((key) => {
    const field = TrainArguments.shape[key];
    const nano = presets.nano[key as keyof typeof presets.nano];
    return `| \`${key}\` | ${show(sizes[key] ?? defaultOf(field))} | ${nano === undefined ? "" : show(nano)} | ${field.description ?? ""} |`;
  });
  return `# Configuration

Keys of \`./whet train\`, written \`key=value\` (\`--key=value\`, \`--key value\` and, for switches, \`--key\` work too). The last one given wins.
Unknown keys are errors that name the nearest known key. The resolved config is printed at the start and written to \`config.json\` in the run
directory. \`./whet train --help\` shows the values that a command would use, with whatever else stands on it.

## Config files

\`./whet train @run.json max_steps=20\` takes keys from a file: one JSON object, in which comments and a comma after the last item may stand. Keys on
the command line win over files, later files over earlier ones. A mistake is named with its file and line.
Paths that begin with \`./\` or \`../\` are meant from where the file is. Every command that has keys takes such files.

\`\`\`jsonc
{
  "preset": "nano",
  // 4 problems, 16 answers each
  "prompts_per_step": 4,
  "completions_per_prompt": 16,
  "max_steps": 20, // a comment
}
\`\`\`

The \`config.json\` of a run is such a file: \`./whet train @RUN/config.json seed=1\` trains again with its settings, in a new run directory. What the
run only found out (fingerprints, when it started) is passed over.

## Keys

\`preset\` is a set of defaults: \`deepcoder\` (Qwen3 on the DeepCoder data set) or \`nano\` (the bundled model and problems). Without a key and a server
\`nano\` is chosen, otherwise \`deepcoder\`. A key that is given always wins over the preset.

A step has two sizes: \`prompts_per_step\` problems with \`completions_per_prompt\` answers each. \`group_size\` and \`batch_size\` are the older way
to say the same: \`batch_size\` answers in all, shared by \`group_size\` problems; those are the names in \`config.json\`.

Environment variables, also read from \`.env\` (variables already set win): \`TINKER_API_KEY\`, \`TINKER_BASE_URL\`, \`SANDBOX_URL\`,
\`SANDBOX_MAX_CONCURRENCY\`, \`HF_TOKEN\`, \`HF_ENDPOINT\`, \`WANDB_API_KEY\`, \`WANDB_BASE_URL\`. They never reach a log, \`config.json\` or a sandbox.
\`.env\` is read from the folder you are in, else from the checkout. It may have a byte-order mark, CRLF, comments, \`export\`, single and double
quotes (over several lines too) and \`\${OTHER}\` or \`\${OTHER:-default}\`; a line that sets nothing is named by its number.

| key | default | nano | meaning |
| --- | --- | --- | --- |
${rows.join("\n")}
`;
}

function show(value: unknown): string {
  if (value === "" || (Array.isArray(value) && value.length === 0)) return "";
  return `\`${typeof value === "object" ? JSON.stringify(value) : String(value)}\``;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(configDocsPath, configDocs());
