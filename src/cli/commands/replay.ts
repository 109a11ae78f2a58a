// `./whet replay`: a recorded run's figures, computed again from its journal; under changed settings, what would have differed.
import { z } from "zod";
import { TrainConfig } from "../../rl/config.ts";
import { pickWith } from "../../rl/config-roles.ts";
import { type Replayed, replay, replayKeys } from "../../rl/replay.ts";
import { readJournal } from "../../runs/read-journal.ts";
import { commandOf } from "../command.ts";
import { textTable } from "../text/table.ts";
import { runKey, runOf } from "../weights/find-run.ts";

const ReplayOptions = TrainConfig.pick(pickWith("replayed")).extend({
  run: runKey,
  json: z
    .boolean()
    .default(false)
    .describe("one JSON line per step and evaluation, with recorded and recomputed figures"),
});

export const command = commandOf(ReplayOptions, {
  usage: "replay [RUN] [key=value …]",
  about: [
    "Computes advantages, filters and metrics of a recorded run again from its journal, without a server. With nothing changed every recorded",
    "figure is reproduced (exit code 1 if one is not); with a changed setting the differences are shown.",
  ],
  words: "run",
  async run({ options, given }) {
    const run = runOf(options.run);
    const changes = Object.fromEntries(replayKeys.filter((key) => given.has(key)).map((key) => [key, options[key]]));
    const table = new Differences();
    for (const replayed of replay(readJournal(run), changes)) {
      if (options.json) console.log(JSON.stringify(replayed));
      table.add(replayed);
    }
    if (!options.json) console.log(table.render(Object.keys(changes).length > 0));
    return Object.keys(changes).length === 0 && table.count > 0 ? 1 : 0;
  },
});

interface Difference {
  steps: number;
  first: number;
  recorded: number;
  now: number;
  largest: { step: number; recorded: number | undefined; now: number | undefined; size: number };
}

class Differences {
  readonly #byName = new Map<string, Difference>();
  readonly #notComputed = new Set<string>();
  readonly #notes = new Set<string>();
  #figures = 0;
  #steps = 0;
  #evaluations = 0;

  get count(): number {
    return this.#byName.size;
  }

  add({ what, step, recorded, now, notComputed, notes }: Replayed): void {
    if (what === "step") this.#steps++;
    else this.#evaluations++;
    for (const name of notComputed) this.#notComputed.add(name);
    for (const note of notes) this.#notes.add(note);
    for (const name of new Set([...Object.keys(recorded), ...Object.keys(now)])) {
      this.#figures++;
      if (notComputed.includes(name)) continue;
      if (Object.is(recorded[name], now[name])) continue;
      const known = this.#byName.get(name);
      const size = Math.abs((now[name] ?? 0) - (recorded[name] ?? 0));
      const here = { step, recorded: recorded[name], now: now[name], size };
      this.#byName.set(name, {
        steps: (known?.steps ?? 0) + 1,
        first: known?.first ?? step,
        recorded: (known?.recorded ?? 0) + (recorded[name] ?? 0),
        now: (known?.now ?? 0) + (now[name] ?? 0),
        largest: known && known.largest.size >= size ? known.largest : here,
      });
    }
  }

  render(changed: boolean): string {
    const seen = `${this.#steps} steps, ${this.#evaluations} evaluations, ${this.#figures} figures`;
    const names = [...this.#notComputed].sort();
    const notes = [
      ...this.#notes,
      ...(names.length > 0 ? [`not computed, since only the server that trains can: ${names.join(", ")}`] : []),
    ];
    if (this.#byName.size === 0) {
      const same = changed ? "nothing would have differed" : "every recorded one is reproduced exactly";
      const other = names.length > 0 ? "what can be computed here would not have differed" : same;
      return [`${seen}: ${other}`, ...notes].join("\n");
    }
    const show = (value: number | undefined) => (value === undefined ? "–" : String(Number(value.toPrecision(5))));
    const rows = [...this.#byName]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { steps, first, recorded, now, largest }]) => {
        const change = `${show(largest.recorded)} → ${show(largest.now)} at ${largest.step}`;
        return [name, String(steps), String(first), show(recorded / steps), show(now / steps), change];
      });
    const head = ["figure", "steps", "first", "recorded", "now", "largest change"];
    return [`${seen}: ${this.#byName.size} differ`, ...textTable(head, rows, "lrrrrl"), ...notes].join("\n");
  }
}
