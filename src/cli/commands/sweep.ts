// `./whet sweep key=a,b,c …`: a run for each combination of the values, each by `./whet train` in a process of its own; one table and one
// page of all. What was done is in the runs' own journals: the same command goes on with those that are not finished.

import { type ChildProcess, spawn } from "node:child_process";
import { basename, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { countOf } from "../../core/count.ts";
import { ConfigError } from "../../core/errors.ts";
import { makeFolder, writeFileAtomic } from "../../core/files.ts";
import { takeLock } from "../../core/lock-file.ts";
import { whet } from "../../core/program.ts";
import { shellCommand } from "../../core/shell.ts";
import { dashboardBeside } from "../../dashboard/beside.ts";
import { renderSweep } from "../../dashboard/sweep-page.ts";
import { defaultRunPath, RunError, readRunConfig } from "../../runs/directory.ts";
import { redact } from "../../runs/log.ts";
import { lookAt, looksLikeRun, writerOf } from "../../runs/overview.ts";
import { parseArguments, refuseWords, sortArguments } from "../arguments/options.ts";
import { trainOptionsHelp } from "../arguments/shown-defaults.ts";
import { type Asked, gridOf, type Member, ownWords, SweepArguments } from "../arguments/sweep-grid.ts";
import { askedAgain, findSweep, readSweep, writeSweep } from "../arguments/sweep-record.ts";
import { isFinished, type Plan, planNew, planToGoOn } from "../arguments/train-plan.ts";
import { type Command, helpOf } from "../command.ts";
import { agreesToCostOf } from "../terminal/agree.ts";
import { type Interrupts, interruptible } from "../terminal/interrupt.ts";
import { say } from "../terminal/loggers.ts";
import { readMember, sweepTable } from "../text/sweep-table.ts";
import { textTable } from "../text/table.ts";
import { budgetExitCode } from "./train.ts";

const described = {
  usage: ["sweep key=a,b,c … [key=value …] [@config.json]", "sweep FOLDER [key=value …]"],
  about: [
    `Trains once for each combination of the values, one run after another or several side by side (parallel=), each as ${whet} train does, in`,
    "a folder of its own under log_path; then one table and one page compare them. Numbers, choices and switches take several values with",
    "commas; a key whose value may have commas itself (text, lists, JSON) is given once for each value. FOLDER, or the same command with the",
    "same log_path, goes on with the runs that are not finished, and shows the table again.",
  ],
};

export const command: Command = {
  keys: SweepArguments.shape,
  help: (args) => helpOf(described, trainOptionsHelp(firstRunOf(args), undefined, SweepArguments)),
  run: (args) => startSweep(args),
};

/** The words of the first run: help shows its settings. */
function firstRunOf(args: readonly string[]): readonly string[] {
  try {
    return gridOf(sortArguments(SweepArguments, args)).members[0]!.words;
  } catch {
    return args;
  }
}

/** A run of the sweep, what is trained in it, and where. */
interface Part extends Member {
  label: string;
  path: string;
  plan: Plan;
}

interface Sweep {
  folder: string;
  keys: readonly string[];
  parts: readonly Part[];
  parallel: number;
  /** What all runs have in common, as words. */
  fixed: readonly string[];
}

async function startSweep(args: readonly string[]): Promise<number> {
  const { words, ...now } = sortArguments(SweepArguments, args);
  refuseWords(words.slice(1), `${whet} sweep`);
  const { folder, asked, agreed } = placeOf(words[0], now);
  const { options } = parseArguments(SweepArguments, ownWords(asked));
  const sweep = await planSweep(folder, asked, options.parallel);
  const { parts, keys } = sweep;
  const open = parts.filter(({ path, plan }) => !isOver(path, plan));
  const counts = keys.map((key, index) => `${new Set(parts.map(({ values }) => values[index])).size} of ${key}`);
  say(
    `sweep    ${countOf(parts.length, "run")} (${counts.join(" × ")}) in ${folder}, ${parts.length - open.length} finished; ${options.parallel} at a time`,
  );
  if (options.dry_run) {
    for (const notice of new Set(parts.flatMap(({ plan }) => plan.notices))) say(`warning: ${notice}`);
    for (const { label, path, plan } of parts)
      say(`  ${label}: ${isOver(path, plan) ? "finished" : readRunConfig(path) ? "goes on" : "new"}, ${path}`);
  }
  if (open.length === 0 && !options.dry_run) return report(sweep);
  const plans = parts.map(({ plan }) => plan);
  const agreedTo = await agreesToCostOf(plans, options.yes || options.dry_run, agreed);
  if (options.dry_run || agreedTo === undefined) return 0;
  makeFolder(folder);
  const lock = takeLock(join(folder, "sweep.lock"));
  if ("holder" in lock)
    throw new RunError(
      "runs/sweep-locked",
      `${folder} is a sweep that process ${lock.holder} works on. Wait for it to end or stop it, then run this again.`,
    );
  try {
    writeSweep(folder, asked, agreedTo);
    return await interruptible((_, interrupts) => trainAll(sweep, open, interrupts), { readerGone: "go on" });
  } finally {
    lock.release();
  }
}

/** The sweep's folder, and what is asked for: what the folder's record says, unless it is typed now. */
function placeOf(word: string | undefined, now: Asked): { folder: string; asked: Asked; agreed?: number | undefined } {
  const typed = now.typed.findLast(({ name }) => name === "log_path")?.shown;
  if (word === undefined) {
    const folder = resolve(typed || defaultRunPath(new Date()));
    return { folder, asked: now, agreed: readSweep(folder)?.agreed };
  }
  const folder = findSweep(word);
  const record = folder === undefined ? undefined : readSweep(folder);
  if (folder === undefined || !record)
    throw new ConfigError(
      "config/no-sweep",
      `There is no sweep in ${word}. ${whet} sweep learning_rate=1e-3,4e-3 log_path=${word} begins one.`,
    );
  const asked = askedAgain(folder, record, { ...now, files: now.files.map((file) => resolve(file)) });
  // Names of files are relative to where they were typed.
  process.chdir(record.cwd);
  return { folder, asked, agreed: record.agreed };
}

/** Every run's settings, checked before any of them begins. */
async function planSweep(folder: string, asked: Asked, parallel: number): Promise<Sweep> {
  const { keys, members } = gridOf(asked);
  if (keys.length === 0)
    throw new ConfigError(
      "config/nothing-swept",
      `No key has several values, so there is nothing to sweep. Write learning_rate=1e-3,4e-3 or seed=0,1,2; ${whet} train makes one run.`,
    );
  if (looksLikeRun(folder))
    throw new ConfigError(
      "config/sweep-in-run",
      `log_path=${folder} holds a run. Name another folder for the sweep's runs.`,
    );
  const parts: Part[] = [];
  for (const member of members) {
    const path = join(folder, member.name);
    const plan = readRunConfig(path) ? planToGoOn(member.parsed, path) : await planNew(member.parsed);
    if (plan.config.max_steps < 0 && plan.config.budget === null)
      throw new ConfigError(
        "config/sweep-without-end",
        "max_steps=-1: the first run would never end, and the second never begin. Set max_steps=40, say, or a budget= for each.",
      );
    if (plan.kind === "skyrl" && parallel > 1)
      throw new ConfigError(
        "config/conflict",
        `parallel=${parallel} with engine=skyrl would start ${parallel} engines on one GPU. Set parallel=1, or name a server with base_url=.`,
      );
    parts.push({ ...member, path, plan, label: keys.map((key, index) => `${key}=${member.values[index]}`).join(" ") });
  }
  const fixed = members[0]!.words.slice(0, -keys.length);
  return { folder, keys, parts, parallel, fixed };
}

const isOver = (path: string, { config }: Plan) =>
  readRunConfig(path) !== undefined && writerOf(path) === undefined && isFinished(lookAt(path).view, config);

async function trainAll(sweep: Sweep, open: readonly Part[], interrupts: Interrupts): Promise<number> {
  const { folder, parallel } = sweep;
  const dashboard = sweep.parts[0]!.plan.config.dashboard ? dashboardBeside(folder) : undefined;
  void dashboard?.ready.then((link) =>
    console.error("url" in link ? `dashboard  ${link.url}` : `no dashboard: ${link.error}`),
  );
  const queue = [...open];
  const failed = new Map<Part, string>();
  const codes: (number | null)[] = [];
  const lane = async () => {
    for (let part = queue.shift(); part && !interrupts.drain.aborted; part = queue.shift()) {
      const { code, reason } = await trainPart(part, interrupts, parallel > 1);
      codes.push(code);
      if (reason !== undefined) failed.set(part, reason);
    }
  };
  try {
    await Promise.all(Array.from({ length: parallel }, lane));
  } finally {
    await dashboard?.close();
  }
  const code = report(sweep, failed);
  if (interrupts.drain.aborted) return 130;
  return code !== 0 && codes.every((one) => one === 0 || one === budgetExitCode) ? budgetExitCode : code;
}

/** How a run's process ended; the reason only where it failed. */
interface End {
  code: number | null;
  reason?: string;
}

/** Trains in a process of its own: a failure there ends that run alone. */
async function trainPart(part: Part, { drain, cancel }: Interrupts, beside: boolean): Promise<End> {
  const { path, label, words, plan } = part;
  await leftAlone(part, drain);
  if (drain.aborted) return { code: null };
  if (isOver(path, plan)) return { code: 0 };
  say(`\n${label}  ${path}`);
  const main = fileURLToPath(new URL("../whetstone.mjs", import.meta.url));
  const own = [`log_path=${path}`, "behavior_if_log_dir_exists=resume", "dashboard=false"];
  const child = spawn(process.execPath, [main, "train", ...words, ...own], {
    // Through the channel it learns that this process is gone, and then saves and ends as at Ctrl-C.
    stdio: beside ? ["ignore", "pipe", "pipe", "ipc"] : ["ignore", "inherit", "inherit", "ipc"],
    // A process group of its own: Ctrl-C comes here, and is passed on once.
    detached: true,
  });
  for (const stream of [child.stdout, child.stderr])
    if (stream) createInterface({ input: stream }).on("line", (line) => console.error(`[${label}] ${line}`));
  const pass = () => child.kill("SIGINT");
  for (const signal of [drain, cancel]) signal.addEventListener("abort", pass);
  try {
    return await endOf(child);
  } finally {
    for (const signal of [drain, cancel]) signal.removeEventListener("abort", pass);
  }
}

const endOf = (child: ChildProcess): Promise<End> =>
  new Promise((done) => {
    child.once("error", (error) => done({ code: 1, reason: `its process did not start: ${error.message}` }));
    child.once("close", (code, signal) => {
      if (signal !== null) done({ code, reason: `its process was ended by ${signal}` });
      else if (code === 0 || code === 130 || code === budgetExitCode) done({ code });
      else done({ code, reason: `exit code ${code}; what it said is above` });
    });
  });

/** Waits for a process that another, killed sweep left behind: it saves what it has. */
async function leftAlone({ path, label }: Part, drain: AbortSignal): Promise<void> {
  for (let holder = writerOf(path), said = false; holder !== undefined && !drain.aborted; holder = writerOf(path)) {
    if (!said) say(`${label}: process ${holder} still writes it; waiting for its end`);
    said = true;
    await wait(200, undefined, { signal: drain }).catch(() => {});
  }
}

/** The table on the terminal, the same with curves on a page, and how to go on. `failed`: why processes ended, which the runs' journals may not know. */
function report({ folder, keys, parts, fixed }: Sweep, failed: ReadonlyMap<Part, string> = new Map()): number {
  const results = parts.map((part) => readMember(part, failed.get(part)));
  const { header, rows, members, notes, next } = sweepTable(keys, results);
  const right = header.map((title) => (["steps", "time", "tokens", "cost"].includes(title) ? "r" : "l")).join("");
  console.log(["", ...textTable(header, rows, right), "", ...notes].map((line) => redact(line)).join("\n"));
  const page = join(folder, "sweep.html");
  const about = redact([`${whet} sweep`, ...keys.map((key) => `${key}=…`), ...fixed].join(" "));
  writeFileAtomic(
    page,
    renderSweep({ title: basename(folder), about, header, rows, notes, runs: members }, new Date()),
  );
  for (const { why, command: line } of next) console.log(`\n  # ${why}\n  ${line}`);
  console.log(`\n  page     ${page}`);
  const missing = parts.filter(({ plan }, index) => !isFinished(results[index]!.view, plan.config)).length;
  if (missing === 0) return 0;
  const again = shellCommand(`${whet} sweep`, folder);
  console.log(`\n${missing} of ${countOf(parts.length, "run")} not finished. To go on:\n  ${again}`);
  return 1;
}
