// What a sweep is made of: every combination of the values of the keys that have several, each with its name and the words of its run.
import { createHash } from "node:crypto";
import { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { whet } from "../../core/program.ts";
import { takesCommas, type Written } from "./options.ts";
import { type ParsedTrainArguments, parseTrainArguments, TrainArguments } from "./train-config.ts";

/** More runs than this are more often a slip than meant. */
const maxRuns = 100;

/** The keys of `./whet train`, but for the one that says what to do with a run that is there: a sweep goes on with it. */
export const SweepArguments = TrainArguments.omit({ behavior_if_log_dir_exists: true }).extend({
  parallel: z.int().min(1).max(maxRuns).default(1).describe("runs side by side"),
});

/** Keys of the sweep itself; its runs do not get them. */
const ownKeys: readonly string[] = ["parallel", "log_path", "dry_run", "yes"];

/** What was asked for, as it was typed. */
export interface Asked {
  /** Of config files. */
  files: readonly string[];
  typed: readonly Pick<Written, "name" | "shown">[];
}

/** One run of a sweep. */
export interface Member {
  /** Its folder. */
  name: string;
  /** Of each swept key. */
  values: readonly string[];
  /** What `./whet train` gets. */
  words: readonly string[];
  parsed: ParsedTrainArguments;
}

/** The sweep's own keys, as words. */
export const ownWords = ({ typed }: Asked) => wordsOf(typed.filter(({ name }) => ownKeys.includes(name)));

const wordsOf = (entries: Asked["typed"]) => entries.map(({ name, shown }) => `${name}=${shown}`);

/** The swept keys in the order of docs/config.md, and the runs; the values of the last key change from run to run. */
export function gridOf({ files, typed }: Asked): { keys: string[]; members: Member[] } {
  const shown = new Map<string, string[]>();
  for (const { name, shown: text } of typed) {
    if (ownKeys.includes(name)) continue;
    const field = Object.hasOwn(SweepArguments.shape, name)
      ? SweepArguments.shape[name as keyof typeof SweepArguments.shape]
      : undefined;
    if (field === undefined && Object.hasOwn(TrainArguments.shape, name))
      throw new ConfigError(
        "config/sweep-key",
        `A sweep goes on with the runs that are in its folder. Leave ${name} out; to begin anew, name another log_path, or delete that folder.`,
      );
    const values = field === undefined || takesCommas(field) ? [text] : text.split(",");
    shown.set(name, [...(shown.get(name) ?? []), ...values]);
  }
  const order = Object.keys(SweepArguments.shape);
  const swept = [...shown]
    .filter(([, values]) => values.length > 1)
    .sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  const count = swept.reduce((product, [, values]) => product * values.length, 1);
  if (count > maxRuns)
    throw new ConfigError(
      "config/sweep-size",
      `${swept.map(([key, values]) => `${values.length} values of ${key}`).join(" times ")} are ${count} runs, and a sweep has ${maxRuns} at most. ` +
        "Give fewer values, or make several sweeps.",
    );
  const fixed = [...shown].flatMap(([name, [only, ...more]]) => (more.length > 0 ? [] : [`${name}=${only}`]));
  const keys = swept.map(([key]) => key);
  const members = combinations(swept.map(([, values]) => values)).map((values) => {
    const words = [
      ...files.map((file) => `@${file}`),
      ...fixed,
      ...keys.map((key, index) => `${key}=${values[index]}`),
    ];
    const parsed = parseTrainArguments(words, `${whet} sweep`);
    const given: Readonly<Record<string, unknown>> = parsed.layers.at(-1)!;
    const exact = keys.map((key, index) =>
      typeof given[key] === "object" && given[key] !== null ? values[index]! : String(given[key]),
    );
    const name = inName(keys.map((key, index) => `${key}-${inName(exact[index]!)}`).join("+"), 200);
    return { name, values: exact, words, parsed };
  });
  const twice = members.find(({ name }, index) => members.findIndex((other) => other.name === name) < index);
  if (twice)
    throw new ConfigError(
      "config/sweep-twice",
      `${keys.map((key, index) => `${key}=${twice.values[index]}`).join(" ")} is named twice. Name each value once.`,
    );
  return { keys, members };
}

const combinations = (lists: readonly (readonly string[])[]): string[][] =>
  lists.reduce<string[][]>((all, list) => all.flatMap((one) => list.map((value) => [...one, value])), [[]]);

/** Text as a part of a folder's name that every command can take; where characters are lost, a hash keeps names apart. */
function inName(text: string, maxLength = 40): string {
  const plain = text.replaceAll(/[^\w.+-]+/g, "-").slice(-maxLength);
  if (plain === text && text !== "") return plain;
  return `${createHash("sha256").update(text).digest("hex").slice(0, 6)}-${plain}`;
}
