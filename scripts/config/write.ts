// docs/config.md and the interface of src/rl/settings.ts, made from the schema: `npm run docs` writes them, a test compares.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { z } from "zod";
import { projectRoot } from "../../src/cli/arguments/environment.ts";
import { choicesOf, defaultOf } from "../../src/cli/arguments/options.ts";
import { TrainArguments, trainGroups } from "../../src/cli/arguments/train-config.ts";
import { presets } from "../../src/rl/config.ts";
import { elsewhere, otherTools } from "./elsewhere.ts";

export const configDocsPath = join(projectRoot, "docs", "config.md");
export const settingsPath = join(projectRoot, "src", "rl", "settings.ts");

/** The whole page. */
export function configDocs(): string {
  const row = (key: keyof typeof TrainArguments.shape) => {
    const field = TrainArguments.shape[key];
    const nano = presets.nano[key as keyof typeof presets.nano];
    const choices = choicesOf(field).map((value) => `\`${value}\``);
    const meaning = `${field.description ?? ""}${choices.length > 0 ? ` (${choices.join(", ")})` : ""}`;
    return `| \`${key}\` | ${show(defaultOf(field))} | ${nano === undefined ? "" : show(nano)} | ${meaning} |`;
  };
  const tables = Object.entries(trainGroups).map(
    ([title, keys]) => `\n### ${title}\n\n${tableHead}\n${keys.map(row).join("\n")}`,
  );
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

A step has two sizes: \`prompts_per_step\` problems with \`completions_per_prompt\` answers each. On the command line, in config files and in
\`runTraining\` \`group_size\` and \`batch_size\` are understood too, the older way to say the same: \`batch_size\` answers in all, shared by
\`group_size\` problems. A run knows and records the first two alone.

Environment variables, also read from \`.env\` (variables already set win): \`TINKER_API_KEY\`, \`TINKER_BASE_URL\`, \`SANDBOX_URL\`,
\`SANDBOX_MAX_CONCURRENCY\`, \`HF_TOKEN\`, \`HF_ENDPOINT\`, \`WANDB_API_KEY\`, \`WANDB_BASE_URL\`. They never reach a log, \`config.json\` or a sandbox.
\`.env\` is read from the folder you are in, else from the checkout. It may have a byte-order mark, CRLF, comments, \`export\`, single and double
quotes (over several lines too) and \`\${OTHER}\` or \`\${OTHER:-default}\`; a line that sets nothing is named by its number.
${tables.join("\n")}

## What others call it

| here | ${otherTools.join(" | ")} |
| --- |${" --- |".repeat(otherTools.length)}
${Object.entries(elsewhere)
  .map(([key, names]) => `| \`${key}\` | ${otherTools.map((tool) => names[tool] ?? "").join(" | ")} |`)
  .join("\n")}
`;
}

const tableHead = "| key | default | nano | meaning |\n| --- | --- | --- | --- |";

function show(value: unknown): string {
  if (value === undefined || value === "" || (Array.isArray(value) && value.length === 0)) return "";
  return `\`${typeof value === "object" ? JSON.stringify(value) : String(value)}\``;
}

/** The keys as an interface: what a program writes, with every key's meaning and defaults where an editor shows them. */
export function settingsSource(): string {
  const { "This command": _, ...ofRuns } = trainGroups;
  const members = Object.values(ofRuns)
    .flat()
    .map((key) => {
      const field = TrainArguments.shape[key];
      const nano = presets.nano[key as keyof typeof presets.nano];
      const usual = defaultOf(field);
      const others = nano === undefined ? "" : `, nano ${json(nano)}`;
      const defaults = usual === undefined ? "" : ` Default ${json(usual)}${others}.`;
      return `  /** ${field.description}.${defaults} */\n  ${key}?: ${typeText(field)};`;
    });
  return `// Made from the schema by \`npm run docs\`: editors show a comment of an interface, not the text of a schema.

/** Settings of a run, as docs/config.md lists them. What is left out is the preset's. */
export interface TrainSettings {
${members.join("\n")}
}
`;
}

const json = (value: unknown) => JSON.stringify(value);

/** The type of a field's values in TypeScript. */
function typeText(field: z.core.$ZodType): string {
  const { def } = field._zod;
  if ("innerType" in def) {
    const inner = typeText(def.innerType as z.core.$ZodType);
    return def.type === "nullable" ? `${inner} | null` : inner;
  }
  if (def.type === "enum")
    return Object.values((def as z.core.$ZodEnumDef).entries)
      .map(json)
      .join(" | ");
  if (def.type === "array") return `${typeText((def as z.core.$ZodArrayDef).element)}[]`;
  if (def.type === "record") return `Record<string, ${typeText((def as z.core.$ZodRecordDef).valueType)}>`;
  return def.type === "int" ? "number" : def.type;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(configDocsPath, configDocs());
  writeFileSync(settingsPath, settingsSource());
}
