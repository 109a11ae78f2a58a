// When models were released, and until when their makers say that their data reaches: what was published before may have been trained on.

/** By the beginning of the model's own name, in lower case: the longest that fits. */
const known: readonly (readonly [prefix: string, released: string, cutoff?: string])[] = [
  ["qwen2.5-coder", "2024-11-12"],
  ["qwen2.5", "2024-09-19"],
  ["qwen3", "2025-04-29"],
  ["qwen3-4b-instruct-2507", "2025-08-06"],
  ["qwen3-30b-a3b-instruct-2507", "2025-07-29"],
  ["qwen3-235b-a22b-instruct-2507", "2025-07-21"],
  ["qwen3-coder", "2025-07-22"],
  ["llama-3.1", "2024-07-23", "2023-12"],
  ["llama-3.2", "2024-09-25", "2023-12"],
  ["llama-3.3", "2024-12-06", "2023-12"],
  ["smollm2", "2024-11-01"],
  ["deepseek-v3.1", "2025-08-21"],
  ["gpt-oss", "2025-08-05", "2024-06"],
];

/** When a model was released and, as its makers state it, until when its data reaches; undefined: nothing is known here. */
export function datesOfModel(modelName: string): { released: string; cutoff: string | undefined } | undefined {
  const name = (modelName.split("/").at(-1) ?? "").toLowerCase();
  const fitting = known.filter(([prefix]) => name.startsWith(prefix)).toSorted((a, b) => b[0].length - a[0].length);
  const [found] = fitting;
  return found && { released: found[1], cutoff: found[2] };
}
