// README.md of an exported model: what it is, what it was trained on and how, what it reached, under which licence, and how to load it.

import { basename, isAbsolute } from "node:path";
import { countOf, percent } from "../core/count.ts";
import { version } from "../core/program.ts";
import { visible } from "../core/visible.ts";
import { shownKeys } from "../rl/config-roles.ts";
import { compareEvaluations, summarizeOutcomes } from "../rl/evaluate.ts";
import type { CheckpointRecord } from "../runs/checkpoints.ts";
import type { Rate } from "../runs/rates.ts";
import type { RunView } from "../runs/view.ts";
import type { Adapter } from "./adapter.ts";

interface CardInput {
  /** The name of the model: that of its folder. */
  name: string;
  modelName: string;
  /** As others can load it: a name on the hub, or a folder. */
  base: string;
  /** Only where it is a name on the hub. */
  hubBase: string | undefined;
  licence: { id: string; name?: string; link?: string } | undefined;
  view: RunView;
  checkpoint: CheckpointRecord;
  adapter: Pick<Adapter, "rank" | "alpha" | "modules">;
  /** Of a merged model: how the weights are stored, and whether the head got weights of its own. */
  merged?: { storedAs: string; unties: boolean } | undefined;
}

export function modelCard(input: CardInput): string {
  const { merged, view, checkpoint, modelName } = input;
  const kind = merged ? "A model" : "A LoRA adapter";
  return `${[
    frontMatter(input),
    `# ${plain(input.name)}`,
    `${kind} for writing programs, made from ${code(modelName)} by reinforcement learning against tests (GRPO) with Whetstone ${version}: ` +
      `checkpoint ${code(checkpoint.name)}, after ${countOf(checkpoint.step, "step")}.`,
    ["## Results", ...results(view, checkpoint)].join("\n\n"),
    ["## Training data", data(view.config)].join("\n\n"),
    ["## Settings", settings(input)].join("\n\n"),
    ["## Use", use(input)].join("\n\n"),
    ["## Licence", licence(input)].join("\n\n"),
  ].join("\n\n")}\n`;
}

function frontMatter({ merged, hubBase, licence, view }: CardInput): string {
  const lines = [
    "---",
    ...(hubBase === undefined ? [] : [`base_model: ${JSON.stringify(hubBase)}`]),
    `library_name: ${merged ? "transformers" : "peft"}`,
    `license: ${JSON.stringify(licence?.id ?? "other")}`,
    ...(licence?.name === undefined ? [] : [`license_name: ${JSON.stringify(licence.name)}`]),
    ...(licence?.link === undefined ? [] : [`license_link: ${JSON.stringify(licence.link)}`]),
    "pipeline_tag: text-generation",
    `tags: [code, reinforcement-learning, grpo, whetstone${merged ? "" : ", lora"}]`,
  ];
  const step = stepsOf(view).at(-1);
  const last = step === undefined ? undefined : summarizeOutcomes(view.evaluations.get(step)!.outcomes);
  if (last?.pass1) lines.push(`# Pass@1 ${last.pass1.rate.toFixed(4)} on ${last.pass1.problems} problems`);
  return [...lines, "---"].join("\n");
}

const stepsOf = (view: RunView) => [...view.evaluations.keys()].sort((first, second) => first - second);

function results(view: RunView, checkpoint: CheckpointRecord): string[] {
  const steps = stepsOf(view).filter((step) => step <= checkpoint.step);
  const picture = "![reward, format rate and Pass@1 over the steps](curves.svg)";
  if (steps.length === 0) return ["It was not measured on test problems.", picture];
  const rows = steps.map((step) => {
    const { pass1, formatRate } = summarizeOutcomes(view.evaluations.get(step)!.outcomes);
    return `| ${step} | ${pass1 ? rate(pass1) : "nothing graded"} | ${pass1?.problems ?? 0} | ${percent(formatRate)} |`;
  });
  const [first, last] = [steps[0]!, steps.at(-1)!];
  const parts = [
    `Pass@1 on the test problems, ${describeSampling(view.config)}, with 95% Wilson intervals:`,
    ["| step | Pass@1 | problems | format rate |", "| --- | --- | --- | --- |", ...rows].join("\n"),
  ];
  if (last !== checkpoint.step)
    parts.push(
      `This checkpoint itself, after ${countOf(checkpoint.step, "step")}, was not measured; step ${last} is the last one before it that was.`,
    );
  if (last !== first) {
    const { gained, lost, problems, pValue } = compareEvaluations(
      view.evaluations.get(first)!.outcomes,
      view.evaluations.get(last)!.outcomes,
    );
    const test = Number(view.config["eval_num_samples"] ?? 1) > 1 ? "sign test" : "McNemar's exact test";
    parts.push(
      `Problem by problem, step ${first} against step ${last}: ${gained} gained and ${lost} lost of ${problems} (${test}, p = ${pValue.toPrecision(2)}).`,
    );
  }
  return [...parts, picture];
}

function describeSampling(config: Readonly<Record<string, unknown>>): string {
  const samples = Number(config["eval_num_samples"] ?? 1);
  const temperature = Number(config["eval_temperature"] ?? 0);
  return `${samples === 1 ? "one sample" : `${samples} samples`} each, ${temperature === 0 ? "greedy" : `temperature ${temperature}`}`;
}

function data(config: Readonly<Record<string, unknown>>): string {
  const rows = [
    ["training", "train_data", "train_problems", "data_fingerprint"],
    ["test", "test_data", "eval_problems", "test_fingerprint"],
  ] as const;
  return [
    "| part | source | problems | fingerprint |",
    "| --- | --- | --- | --- |",
    ...rows.map(
      ([part, source, size, print]) =>
        `| ${part} | ${code(sourcesIn(String(config[source] ?? "")))} | ${plain(config[size] ?? "?")} | ${config[print] ? code(config[print]) : "–"} |`,
    ),
  ].join("\n");
}

/** Data sources by name: where a file was is nobody else's business. */
const sourcesIn = (text: string) =>
  text
    .split(",")
    .map((part) => (isAbsolute(part) ? basename(part) : part))
    .join(",") || "given by a program";

function settings({ view, adapter: { rank, alpha, modules } }: CardInput): string {
  const { config } = view;
  const shown = shownKeys("card").filter((key) => config[key] !== undefined && config[key] !== "");
  return [
    "| setting | value |",
    "| --- | --- |",
    ...shown.map((key) => `| \`${key}\` | ${code(config[key])} |`),
    `| LoRA | rank ${rank}, alpha ${alpha}, on ${modules.map(code).join(", ")} |`,
  ].join("\n");
}

function use({ base, merged }: CardInput): string {
  const where = JSON.stringify("PATH_TO_THIS_FOLDER");
  const loading = merged
    ? [
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        `model = AutoModelForCausalLM.from_pretrained(${where})`,
        `tokenizer = AutoTokenizer.from_pretrained(${where})`,
      ]
    : [
        "from peft import PeftModel",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        `base = ${JSON.stringify(base)}`,
        `model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), ${where})`,
        "tokenizer = AutoTokenizer.from_pretrained(base)",
      ];
  const notes = merged
    ? `The adapter is merged into the weights, stored as ${merged.storedAs}.` +
      (merged.unties ? " The base shares its embedding with its head; here the head has weights of its own." : "")
    : "The prompt is a chat message in the base model's format; the answer holds a fenced block of Python.";
  return `\`\`\`python\n${loading.join("\n")}\n\`\`\`\n\n${notes}`;
}

function licence({ licence, modelName }: CardInput): string {
  return licence === undefined
    ? `What is made from ${code(modelName)} is under its terms, which are not known here. Look them up before you pass this on, and write them above.`
    : `${code(modelName)} is under ${code(licence.name ?? licence.id)}${licence.link ? ` (${plain(licence.link)})` : ""}, and so is what is made from it, unless its terms say otherwise.`;
}

const rate = ({ rate, low, high }: Rate) => `${percent(rate)} [${percent(low)}, ${percent(high)}]`;

/** Text of a config as a piece of Markdown that is nothing but text. */
const plain = (value: unknown): string =>
  visible(textOf(value))
    .replaceAll(/\s+/g, " ")
    .replaceAll(/[\\`*_{}[\]<>#|!~]/g, "\\$&");

/** As code: only what ends the code or the table's cell has to go. */
const code = (value: unknown): string => {
  const text = visible(textOf(value)).replaceAll(/\s+/g, " ").replaceAll("`", "'").replaceAll("|", "\\|").trim();
  return text === "" ? "–" : `\`${text}\``;
};

const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value ?? ""));
