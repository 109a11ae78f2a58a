// The command table. Each command is a file of commands/, loaded when it is used. What commands share is in the other folders:
//   arguments/  what was typed, and the settings that it comes to     engines/   the engines that this machine starts
//   weights/    which run, which checkpoint, and its weights           problems/  files of problems and of answers, suites
//   parts/      what a command works with, opened and closed           serve/     models behind an API
//   text/       what commands print                                    terminal/  questions, progress, interrupts
import { runsFromSource } from "../core/program.ts";
import type { Command, CommandEntry } from "./command.ts";

type Group = Readonly<Record<string, CommandEntry>>;

/** Commands that work on the checkout itself; the package does not have them. */
const ofCheckout: Group = {
  bench: {
    summary: "benchmarks, as ratios measured in one run",
    load: () => fromScripts("bench.ts"),
  },
  test: {
    summary: "type check, lint and every test",
    load: () => fromScripts("test.ts"),
  },
};

/** By the headings of their list, in its order. */
export const commandGroups: Readonly<Record<string, Group>> = {
  Train: {
    train: {
      summary: "train a model by reinforcement learning; without settings, everything runs on this machine",
      load: () => import("./commands/train.ts"),
    },
    sft: {
      summary: "trains on answers that are given: conversations, or problems' reference solutions",
      load: () => import("./commands/sft.ts"),
    },
    collect: {
      summary: "asks a model the training problems and writes what passes as answers to learn from",
      load: () => import("./commands/collect.ts"),
    },
    resume: {
      summary: "goes on with a run where it ended, with its own settings",
      load: () => import("./commands/resume.ts"),
    },
    sweep: {
      summary: "trains once for each combination of settings, and compares the runs in one table and on one page",
      load: () => import("./commands/sweep.ts"),
    },
    init: {
      summary: "a small project to start from: problems, a config file, a README",
      load: () => import("./commands/init.ts"),
    },
    doctor: {
      summary: "checks everything a training run needs, before it costs anything",
      load: () => import("./commands/doctor.ts"),
    },
    models: {
      summary: "what a server offers: models, context windows, renderers, prices",
      load: () => import("./commands/models.ts"),
    },
    control: {
      summary: "asks a live run to pause, go on, save, evaluate, stop, or change its learning rate",
      load: () => import("./commands/control.ts"),
    },
  },
  "Look at runs": {
    runs: {
      summary: "the runs on this machine: state, steps, Pass@1, cost",
      load: () => import("./commands/runs.ts"),
    },
    dashboard: {
      summary: "runs in the browser: curves, every answer with its verdict, comparison, controls",
      load: () => import("./commands/dashboard.ts"),
    },
    show: {
      summary: "a run as text: its steps, groups, answers, and the test that a program failed on",
      load: () => import("./commands/show.ts"),
    },
    diagnose: {
      summary: "what is wrong with a run, live or finished, and what to do about it",
      load: () => import("./commands/diagnose.ts"),
    },
    report: {
      summary: "a run as one HTML page to send to somebody: curves, findings, programs and why they failed",
      load: () => import("./commands/report.ts"),
    },
    replay: {
      summary: "a recorded run's figures again from its journal, and what other settings would have changed",
      load: () => import("./commands/replay.ts"),
    },
  },
  "Use what was trained": {
    eval: {
      summary:
        "Pass@1 and pass@k on test problems or a published suite, with intervals; compares two models or checkpoints",
      load: () => import("./commands/eval.ts"),
    },
    sample: {
      summary: "asks a checkpoint, or the base model beside it, one problem; grades the answers on request",
      load: () => import("./commands/sample.ts"),
    },
    export: {
      summary: "a run's adapter as a PEFT folder or merged model, with a model card",
      load: () => import("./commands/export.ts"),
    },
    checkpoints: {
      summary: "what lies on the server or in a run's engine: size, age, expiry, whose; and prunes it",
      load: () => import("./commands/checkpoints.ts"),
    },
  },
  "Problems and grading": {
    certify: {
      summary: "checks a problem set: references pass, know-nothing programs fail",
      load: () => import("./commands/certify.ts"),
    },
    grade: {
      summary: "verdicts and rewards for a file of answers or programs",
      load: () => import("./commands/grade.ts"),
    },
    sandbox: {
      summary: "Sandbox Fusion's API over the embedded jail",
      load: () => import("./commands/sandbox.ts"),
    },
  },
  "Servers and this installation": {
    serve: {
      summary: "the Tinker API on this machine, for any Tinker client",
      load: () => import("./commands/serve.ts"),
    },
    engines: {
      summary: "the engines of this machine: what is installed, the disk it takes; removes one",
      load: () => import("./commands/engines.ts"),
    },
    completion: {
      summary: "completion of commands and keys for bash, zsh and fish",
      load: () => import("./commands/completion.ts"),
    },
    ...(runsFromSource && ofCheckout),
  },
};

/** Imported by address, so that no build includes it; where Node runs prepared source, the loader reads what stands outside of it. */
async function fromScripts(name: string): Promise<{ command: Command }> {
  await import(new URL("../core/ts-loader.mjs", import.meta.url).href);
  return import(new URL(`../../scripts/${name}`, import.meta.url).href);
}

/** Every command of this installation. */
export const commands: Group = Object.assign({}, ...Object.values(commandGroups));
