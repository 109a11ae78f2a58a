// The command table. Each command is a file of its own, loaded when it is used.
import type { CommandEntry } from "./command.ts";

export const commands: Readonly<Record<string, CommandEntry>> = {
  train: {
    summary: "train a model by reinforcement learning; without settings, everything runs on this machine",
    load: () => import("./train.ts"),
  },
  resume: {
    summary: "goes on with a run where it ended, with its own settings",
    load: () => import("./resume.ts"),
  },
  dashboard: {
    summary: "runs in the browser: curves, every answer with its verdict, comparison, controls",
    load: () => import("./dashboard.ts"),
  },
  eval: {
    summary: "Pass@1 and pass@k of a model or checkpoint, with intervals; compares two",
    load: () => import("./eval.ts"),
  },
  sample: {
    summary: "asks a checkpoint, or the base model beside it, one problem; grades the answers on request",
    load: () => import("./sample.ts"),
  },
  export: {
    summary: "a run's adapter as a PEFT folder or merged model, with a model card",
    load: () => import("./export.ts"),
  },
  runs: { summary: "the runs on this machine: state, steps, Pass@1, cost", load: () => import("./runs.ts") },
  doctor: {
    summary: "checks everything a training run needs, before it costs anything",
    load: () => import("./doctor.ts"),
  },
  models: {
    summary: "what a server offers: models, context windows, renderers, prices",
    load: () => import("./models.ts"),
  },
  control: {
    summary: "asks a live run to pause, go on, save, evaluate, stop, or change its learning rate",
    load: () => import("./control.ts"),
  },
  diagnose: {
    summary: "what is wrong with a run, live or finished, and what to do about it",
    load: () => import("./diagnose.ts"),
  },
  report: {
    summary: "a run as one HTML page to send to somebody: curves, findings, programs and why they failed",
    load: () => import("./report.ts"),
  },
  replay: {
    summary: "a recorded run's figures again from its journal, and what other settings would have changed",
    load: () => import("./replay.ts"),
  },
  show: {
    summary: "a run as text: its steps, groups, answers, and the test that a program failed on",
    load: () => import("./show.ts"),
  },
  checkpoints: {
    summary: "what lies on the server or in a run's engine: size, age, expiry, whose; and prunes it",
    load: () => import("./checkpoints.ts"),
  },
  serve: { summary: "the Tinker API on this machine, for any Tinker client", load: () => import("./serve.ts") },
  grade: { summary: "verdicts and rewards for a file of answers or programs", load: () => import("./grade.ts") },
  certify: {
    summary: "checks a problem set: references pass, know-nothing programs fail",
    load: () => import("./certify.ts"),
  },
  sandbox: { summary: "Sandbox Fusion's API over the embedded jail", load: () => import("./sandbox.ts") },
  init: {
    summary: "a small project to start from: problems, a config file, a README",
    load: () => import("./init.ts"),
  },
  completion: {
    summary: "completion of commands and keys for bash, zsh and fish",
    load: () => import("./completion.ts"),
  },
};
