// `./whet control`: asks a run that trains, in whatever process, to pause, go on, save, evaluate, stop, or learn at another rate.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { ConfigError } from "../core/errors.ts";
import { whet } from "../core/program.ts";
import { type Control, describeControl, requestControl } from "../runs/controls.ts";
import { runFiles } from "../runs/directory.ts";
import type { Command } from "./command.ts";
import { describeOptions, parseArguments } from "./options.ts";
import { requireRun } from "./require-run.ts";

const words = ["pause", "go-on", "save", "evaluate", "stop"] as const;

const ControlOptions = z.strictObject({
  run: z.string().default("").describe("run directory"),
  learning_rate: z.number().positive().optional().describe("the learning rate from the next update on"),
  wait: z.number().min(0).default(0).describe("seconds to wait until the run has taken the request; 0: do not wait"),
});

export const command: Command = {
  help: () =>
    [
      `Usage: ${whet} control run=DIR ${words.join("|")}`,
      `       ${whet} control run=DIR learning_rate=X`,
      "",
      "Asks a run that is training, in another terminal or on the dashboard's machine, to do something. It takes the request before its next",
      "update, or at once while it waits for answers, and writes it into its journal: a resumed run repeats it. pause lets the answers under way",
      "come in and then waits for go-on; stop finishes the update under way, saves and ends, as Ctrl-C does.",
      "",
      describeOptions(ControlOptions),
    ].join("\n"),
  async run(args) {
    const { options, words: given } = parseArguments(ControlOptions, args);
    requireRun(options.run);
    const controls = controlsOf(given, options.learning_rate);
    const ids = controls.map((control) => requestControl(options.run, control));
    console.log(`asked ${options.run}: ${controls.map(describeControl).join(", ")}`);
    if (options.wait === 0) return 0;
    const folder = join(options.run, runFiles.controls);
    const isWaiting = () => existsSync(folder) && readdirSync(folder).some((name) => ids.includes(name.slice(0, -5)));
    for (const deadline = Date.now() + options.wait * 1000; isWaiting(); await sleep(100))
      if (Date.now() > deadline) {
        console.log("not taken yet: the run takes it before its next update");
        return 1;
      }
    console.log("taken");
    return 0;
  },
};

function controlsOf(given: readonly string[], learningRate: number | undefined): Control[] {
  const unknown = given.find((word) => !(words as readonly string[]).includes(word));
  if (unknown !== undefined)
    throw new ConfigError(
      "config/unknown-control",
      `"${unknown}" cannot be asked of a run. Write one of ${words.join(", ")}, or learning_rate=X.`,
    );
  const controls: Control[] = given.map((word) => ({ kind: word as (typeof words)[number] }));
  if (learningRate !== undefined) controls.unshift({ kind: "learning-rate", value: learningRate });
  if (controls.length > 0) return controls;
  throw new ConfigError(
    "config/unknown-control",
    `What is asked of the run is missing. Write one of ${words.join(", ")}, or learning_rate=X.`,
  );
}
