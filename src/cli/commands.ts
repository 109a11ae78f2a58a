// The command table. Each command is a file of commands/, loaded when it is used. What commands share is in the other folders:
//   arguments/  what was typed, and the settings that it comes to     engines/   the engines that this machine starts
//   weights/    which run, which checkpoint, and its weights           problems/  files of problems and of answers, suites
//   parts/      what a command works with, opened and closed           serve/     models behind an API
//   text/       what commands print                                    terminal/  questions, progress, interrupts
import { runsFromSource } from "../core/program.ts";
import type { Command, CommandEntry } from "./command.ts";

const shipped: Readonly<Record<string, CommandEntry>> = {
  train: {
    group: "Train",
    summary: "train a model by reinforcement learning; without settings, everything runs on this machine",
    load: () => import("./commands/train.ts"),
  },
  sft: {
    group: "Train",
    summary: "trains on answers that are given: conversations, or problems' reference solutions",
    load: () => import("./commands/sft.ts"),
  },
  collect: {
    group: "Train",
    summary: "asks a model the training problems and writes what passes as answers to learn from",
    load: () => import("./commands/collect.ts"),
  },
  resume: {
    group: "Train",
    summary: "goes on with a run where it ended, with its own settings",
    load: () => import("./commands/resume.ts"),
  },
  sweep: {
    group: "Train",
    summary: "trains once for each combination of settings, and compares the runs in one table and on one page",
    load: () => import("./commands/sweep.ts"),
  },
  init: {
    group: "Train",
    summary: "a small project to start from: problems, a config file, a README",
    load: () => import("./commands/init.ts"),
  },
  doctor: {
    group: "Train",
    summary: "checks everything a training run needs, before it costs anything",
    load: () => import("./commands/doctor.ts"),
  },
  models: {
    group: "Train",
    summary: "what a server offers: models, context windows, renderers, prices",
    load: () => import("./commands/models.ts"),
  },
  control: {
    group: "Train",
    summary: "asks a live run to pause, go on, save, evaluate, stop, or change its learning rate",
    load: () => import("./commands/control.ts"),
  },
  runs: {
    group: "Look at runs",
    summary: "the runs on this machine: state, steps, Pass@1, cost",
    load: () => import("./commands/runs.ts"),
  },
  dashboard: {
    group: "Look at runs",
    summary: "runs in the browser: curves, every answer with its verdict, comparison, controls",
    load: () => import("./commands/dashboard.ts"),
  },
  show: {
    group: "Look at runs",
    summary: "a run as text: its steps, groups, answers, and the test that a program failed on",
    load: () => import("./commands/show.ts"),
  },
  diagnose: {
    group: "Look at runs",
    summary: "what is wrong with a run, live or finished, and what to do about it",
    load: () => import("./commands/diagnose.ts"),
  },
  report: {
    group: "Look at runs",
    summary: "a run as one HTML page to send to somebody: curves, findings, programs and why they failed",
    load: () => import("./commands/report.ts"),
  },
  replay: {
    group: "Look at runs",
    summary: "a recorded run's figures again from its journal, and what other settings would have changed",
    load: () => import("./commands/replay.ts"),
  },
  eval: {
    group: "Use what was trained",
    summary:
      "Pass@1 and pass@k on test problems or a published suite, with intervals; compares two models or checkpoints",
    load: () => import("./commands/eval.ts"),
  },
  sample: {
    group: "Use what was trained",
    summary: "asks a checkpoint, or the base model beside it, one problem; grades the answers on request",
    load: () => import("./commands/sample.ts"),
  },
  export: {
    group: "Use what was trained",
    summary: "a run's adapter as a PEFT folder or merged model, with a model card",
    load: () => import("./commands/export.ts"),
  },
  checkpoints: {
    group: "Use what was trained",
    summary: "what lies on the server or in a run's engine: size, age, expiry, whose; and prunes it",
    load: () => import("./commands/checkpoints.ts"),
  },
  certify: {
    group: "Problems and grading",
    summary: "checks a problem set: references pass, know-nothing programs fail",
    load: () => import("./commands/certify.ts"),
  },
  grade: {
    group: "Problems and grading",
    summary: "verdicts and rewards for a file of answers or programs",
    load: () => import("./commands/grade.ts"),
  },
  sandbox: {
    group: "Problems and grading",
    summary: "Sandbox Fusion's API over the embedded jail",
    load: () => import("./commands/sandbox.ts"),
  },
  serve: {
    group: "Servers and this installation",
    summary: "the Tinker API on this machine, for any Tinker client",
    load: () => import("./commands/serve.ts"),
  },
  engines: {
    group: "Servers and this installation",
    summary: "the engines of this machine: what is installed, the disk it takes; removes one",
    load: () => import("./commands/engines.ts"),
  },
  completion: {
    group: "Servers and this installation",
    summary: "completion of commands and keys for bash, zsh and fish",
    load: () => import("./commands/completion.ts"),
  },
};

/** Those that work on the checkout itself; the package is without them. */
const ofCheckout: Readonly<Record<string, CommandEntry>> = {
  bench: {
    group: "Servers and this installation",
    summary: "benchmarks, as ratios measured in one run",
    load: () => fromScripts("bench.ts"),
  },
  test: {
    group: "Servers and this installation",
    summary: "type check, lint and every test",
    load: () => fromScripts("test.ts"),
  },
};

/** By its address, so that no build takes it along; a Node that runs prepared source needs the loader to read what stands outside it. */
async function fromScripts(name: string): Promise<{ command: Command }> {
  await import(new URL("../core/ts-loader.mjs", import.meta.url).href);
  return import(new URL(`../../scripts/${name}`, import.meta.url).href);
}

/** Every command of this installation. */
export const commands: typeof shipped = runsFromSource ? { ...shipped, ...ofCheckout } : shipped;
