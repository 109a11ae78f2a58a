// docs/config.md, made from the schema: `node --import ./src/core/ts-loader.mjs src/cli/config-docs.ts` writes it, a test compares it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { configAliases, presets, TrainConfig } from "../rl/config.ts";
import { projectRoot } from "./environment.ts";
import { defaultOf } from "./options.ts";

export const configDocsPath = join(projectRoot, "docs", "config.md");

/** The whole page. */
export function configDocs(): string {
  const rows = Object.entries(TrainConfig.shape).map(([key, field]) => {
    const nano = presets.nano[key as keyof typeof presets.nano];
    return `| \`${key}\` | ${show(defaultOf(field))} | ${nano === undefined ? "" : show(nano)} | ${field.description ?? ""} |`;
  });
  const aliases = Object.entries(configAliases).map(([alias, key]) => `\`${alias}\` for \`${key}\``);
  return `# Configuration

Keys of \`./whet train\`, written \`key=value\` (\`--key=value\` and \`--key value\` work too). The last one given wins. Unknown keys are errors that
name the nearest known key. The resolved config is printed at the start and written to \`config.json\` in the run directory.

\`preset\` is a set of defaults: \`deepcoder\` (Qwen3 on the DeepCoder data set) or \`nano\` (the bundled model and problems). Without a key and a server
\`nano\` is chosen, otherwise \`deepcoder\`. A key that is given always wins over the preset.

Other names: ${aliases.join(", ")}, and \`completions_per_prompt\`, which sets \`batch_size\` to that many times \`group_size\`.

Environment variables, also read from \`.env\` (variables already set win): \`TINKER_API_KEY\`, \`TINKER_BASE_URL\`, \`SANDBOX_URL\`,
\`SANDBOX_MAX_CONCURRENCY\`, \`HF_TOKEN\`, \`HF_ENDPOINT\`, \`WANDB_API_KEY\`, \`WANDB_BASE_URL\`. They never reach a log, \`config.json\` or a sandbox.

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
