// What config.json holds besides the settings, and what can be asked of every key: its role, and which keys have a trait.
import type { z } from "zod";
import type { Role, Traits } from "./config-entry.ts";
import { configKeys } from "./config-keys.ts";

/** What config.json says of a run besides its settings. */
export const recordedFacts = {
  tariff: { role: "setting" },
  sandbox: { role: "answers" },
  prompt_template: { role: "answers" },
  environment: { role: "answers", means: "the environment's file says something else" },
  data_fingerprint: { role: "identity", means: "the problems, or something in one of them, are others" },
  train_problems: { role: "setting" },
  test_fingerprint: { role: "evaluations", means: "the test problems, or something in one of them, are others" },
  eval_problems: { role: "setting" },
  eval_ids_hash: { role: "evaluations" },
  train_test_overlap: { role: "setting" },
  weights: { role: "place" },
  frozen_samplers: { role: "setting" },
  wandb_run_id: { role: "place" },
  started_at: { role: "place" },
} satisfies Readonly<Record<string, { role: Role; means?: string }>>;

type Entry = { role: Role; schema: z.ZodType } & Traits;
const entries = Object.entries<Entry>(configKeys);

/** What another value of a key of config.json means for a run that goes on. */
export const roleOf = (name: string): Role => {
  const known: Readonly<Record<string, { role: Role }>> = { ...configKeys, ...recordedFacts };
  return Object.hasOwn(known, name) ? known[name]!.role : "setting";
};

/** What a fact stands for, where its name alone says little. */
export const meaningOf = (name: string): string => {
  const fact = (recordedFacts as Readonly<Record<string, { means?: string }>>)[name];
  return fact?.means === undefined ? "" : `${fact.means}: `;
};

/** The keys that a summary names. */
export const shownKeys = (where: "start" | "card"): string[] =>
  entries.flatMap(([name, { shown }]) => (shown === where || shown === "both" ? [name] : []));

/** Keys with a trait, in a type that knows which. */
type KeysWith<Trait extends keyof Traits> = {
  [Name in keyof typeof configKeys]: (typeof configKeys)[Name] extends Record<Trait, unknown> ? Name : never;
}[keyof typeof configKeys];
export const keysWith = <Trait extends keyof Traits>(trait: Trait) =>
  entries.filter(([, entry]) => trait in entry).map(([name]) => name as KeysWith<Trait>);
/** The same as zod picks them from a schema. */
export const pickWith = <Trait extends keyof Traits>(trait: Trait) =>
  Object.fromEntries(keysWith(trait).map((name) => [name, true])) as Record<KeysWith<Trait>, true>;
