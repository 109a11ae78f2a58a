// Problems to learn from and problems to measure on: as shipped, or those of the training set that the bundled model solves at most 13% of
// the time before training (hard), or at least half of the time (easy), with a part of them held out.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Random } from "../src/core/random.ts";
import { RunView } from "../src/runs/view.ts";
import { knownTests, train } from "./learning-run.ts";

const file = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const hardest = 0.13;
const easiest = 0.5;
/** Answers per problem by which hard and easy are told apart. */
const tries = 8;
const maxHeldOut = 150;

export const mixNames = ["shipped", "hard", "easy"] as const;
export interface Mix {
  train: string;
  test: string;
}

export async function mixOf(
  name: (typeof mixNames)[number],
  folder: string,
  say: (line: string) => void,
): Promise<Mix> {
  const all = file("data/starter/train.jsonl");
  if (name === "shipped") return { train: all, test: knownTests(folder) };
  const rates = await baseRates(folder, say);
  const isWanted = (rate: number) => (name === "hard" ? rate <= hardest : rate >= easiest);
  const random = new Random("mix", name);
  const chosen = readFileSync(all, "utf8")
    .trimEnd()
    .split("\n")
    .filter((line) => isWanted(rates.get((JSON.parse(line) as { id: string }).id)!))
    .map((line) => ({ line, key: random.float() }))
    .sort((a, b) => a.key - b.key);
  const held = Math.min(maxHeldOut, Math.floor(chosen.length / 5));
  say(`${name}: ${chosen.length - held} problems, ${held} held out`);
  const write = (part: string, some: typeof chosen) => {
    const path = join(folder, `${name}-${part}.jsonl`);
    writeFileSync(path, `${some.map(({ line }) => line).join("\n")}\n`);
    return path;
  };
  return { train: write("train", chosen.slice(held)), test: write("test", chosen.slice(0, held)) };
}

/** How often the model solves each training problem before it is trained; measured once for a model and its problems. */
async function baseRates(folder: string, say: (line: string) => void): Promise<Map<string, number>> {
  const [data, weights] = ["data/starter/train.jsonl", "models/nano-coder/model.safetensors"].map(file);
  const hash = createHash("sha256").update(readFileSync(data!)).update(readFileSync(weights!)).digest("hex");
  const cache = file(`node_modules/.cache/whetstone/solve-rates-${hash.slice(0, 16)}.json`);
  try {
    return new Map(JSON.parse(readFileSync(cache, "utf8")) as [string, number][]);
  } catch {
    say(`trying every training problem ${tries} times (once; some minutes)`);
  }
  const path = join(folder, "base-rates");
  await train(path, [0], [`test_data=${data}`, `eval_num_samples=${tries}`, "eval_temperature=1"]);
  const outcomes = RunView.read(path).evaluations.get(0)!.outcomes;
  const rates = outcomes.map(({ id, passed, samples }) => [id, passed / Math.max(1, samples)] as const);
  mkdirSync(dirname(cache), { recursive: true });
  writeFileSync(cache, JSON.stringify(rates));
  return new Map(rates);
}
