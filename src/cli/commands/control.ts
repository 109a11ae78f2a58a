// `./whet control`: asks a run that trains, in whatever process, to pause, go on, save, evaluate, stop, or learn at another rate.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { whet } from "../../core/program.ts";
import { type Control, describeControl, requestControl } from "../../runs/controls.ts";
import { runFiles } from "../../runs/directory.ts";
import { refuseWords } from "../arguments/options.ts";
import { commandOf } from "../command.ts";
import { runKey, runOf } from "../weights/find-run.ts";

const words = ["pause", "go-on", "save", "evaluate", "stop"] as const;

const ControlOptions = z.strictObject({
  run: runKey,
  learning_rate: z.number().positive().optional().describe("the learning rate from the next update on"),
  wait: z.number().min(0).default(0).describe("seconds to wait until the run has taken the request; 0: do not wait"),
});

export const command = commandOf(ControlOptions, {
  usage: [`control [RUN] ${words.join("|")}`, "control [RUN] learning_rate=X"],
  about: [
    "Asks a run that is training, in another terminal or on the dashboard's machine, to do something. It takes the request before its next",
    "update, or at once while it waits for answers, and writes it into its journal: a resumed run repeats it. pause lets the answers under way",
    "come in and then waits for go-on; stop finishes the update under way, saves and ends, as Ctrl-C does.",
  ],
  words: Number.POSITIVE_INFINITY,
  async run({ options, words: given }) {
    const asked = words.filter((word) => given.includes(word));
    const named = given.filter((word) => !(words as readonly string[]).includes(word));
    const controls = controlsOf(asked, options.learning_rate, named);
    refuseWords(options.run === "" ? named.slice(1) : named, `${whet} control`);
    const run = runOf(options.run || (named[0] ?? ""));
    const ids = controls.map((control) => requestControl(run, control));
    console.log(`asked ${run}: ${controls.map(describeControl).join(", ")}`);
    if (options.wait === 0) return 0;
    const folder = join(run, runFiles.controls);
    const isWaiting = () => existsSync(folder) && readdirSync(folder).some((name) => ids.includes(name.slice(0, -5)));
    for (const deadline = Date.now() + options.wait * 1000; isWaiting(); await sleep(100))
      if (Date.now() > deadline) {
        console.log("not taken yet: the run takes it before its next update");
        return 1;
      }
    console.log("taken");
    return 0;
  },
});

function controlsOf(
  asked: readonly (typeof words)[number][],
  learningRate: number | undefined,
  others: readonly string[],
): Control[] {
  const controls: Control[] = asked.map((kind) => ({ kind }));
  if (learningRate !== undefined) controls.unshift({ kind: "learning-rate", value: learningRate });
  if (controls.length > 0) return controls;
  throw new ConfigError(
    "config/unknown-control",
    `${others.length > 0 ? `"${others[0]}" cannot be asked of a run` : "What is asked of the run is missing"}. Write one of ${words.join(", ")}, or learning_rate=X.`,
  );
}
