// A run as one page to send to a colleague: curves as SVG, no script, nothing loaded from anywhere. Read from the journal.
import { basename } from "node:path";
import { percent as percentOf } from "../core/count.ts";
import { escapeHtml } from "../core/html.ts";
import { type BatchGroup, readBatch } from "../runs/batch.ts";
import { clock } from "../runs/display.ts";
import type { Finding } from "../runs/findings.ts";
import { metricCharts } from "../runs/metric-names.ts";
import type { Rate } from "../runs/rates.ts";
import { pass1Curve } from "../runs/svg-plot.ts";
import { turnsOf } from "../runs/turns.ts";
import { detailsOf, readGroups, type SampleDetail } from "./details.ts";
import { codeHtml, untrustedHtml } from "./html.ts";
import { infoOf, pulseOf, sliceOf } from "./info.ts";
import { kindOf, signs } from "./page/text.js";
import { compareEvaluationsOf } from "./problems.ts";
import { details, figureOf, list, namedRow, pageOf, pass1Figure, row, section } from "./report-parts.ts";
import { RunIndex } from "./run-index.ts";

/** Steps of which a group is shown, and programs of each. */
const shownSteps = 4;
const shownPrograms = 4;
/** Problems named in each list. */
const maxNamed = 60;

/** The report of the run in a directory, as HTML. */
export async function renderReport(runPath: string, now: Date): Promise<string> {
  const index = new RunIndex(runPath);
  try {
    return await index.read(() => page(index, now));
  } finally {
    index.close();
  }
}

const page = (index: RunIndex, now: Date) =>
  pageOf(`${basename(index.path)} · Whetstone`, [
    headOf(index, now),
    findingsOf(index),
    curvesOf(index),
    evaluationsOf(index),
    programsOf(index),
    configOf(index),
  ]);

function headOf(index: RunIndex, now: Date): string {
  const { config, from, seconds, evaluations, sessions } = infoOf(index);
  const pulse = pulseOf(index);
  const measured = evaluations.filter(({ metrics }) => metrics["eval/pass@1"] !== undefined);
  const pass1 = (at: number) => measured.at(at)?.metrics;
  const rewards = sliceOf(index.view.steps, ["mean_reward", "mean_correct", "cost/total"]).columns;
  const mean = (name: string, from: number, to?: number) => {
    const values = (rewards[name] ?? []).slice(from, to).filter((value) => value !== null);
    return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
  };
  const tile = (name: string, value: string, more = "") =>
    `<div class="tile"><small>${name}</small><b>${value}</b><small>${more}</small></div>`;
  const last = pass1(-1);
  const first = measured.length > 1 ? pass1(0) : undefined;
  const cost = (rewards["cost/total"] ?? []).findLast((value) => value !== null);
  const used = sessions.filter(({ started }) => started).length;
  return [
    `<header><h1>${untrustedHtml(basename(index.path))}</h1>`,
    `<p>${untrustedHtml(String(config["model_name"] ?? ""))} · ${escapeHtml(pulse.state)} · ${used} ${used === 1 ? "session" : "sessions"} · written ${escapeHtml(now.toISOString().slice(0, 16).replace("T", " "))} UTC by Whetstone</p>${from === null ? "" : `<p>began with ${untrustedHtml(from)}</p>`}</header>`,
    reasonOf(
      index.problem ?? (pulse.state === "failed" ? (sessions.at(-1)?.error ?? "it did not say why") : undefined),
    ),
    '<section class="tiles">',
    tile(
      "steps",
      String(pulse.step + 1),
      Number(config["max_steps"]) > pulse.step ? `of ${Number(config["max_steps"])}` : "",
    ),
    tile("reward", number(mean("mean_reward", -5)), `last 5 steps; first 5: ${number(mean("mean_reward", 0, 5))}`),
    tile("correct", percent(mean("mean_correct", -5)), `last 5 steps; first 5: ${percent(mean("mean_correct", 0, 5))}`),
    tile(
      "Pass@1",
      percent(last?.["eval/pass@1"]),
      last
        ? `${percent(last["eval/pass@1_low"])} to ${percent(last["eval/pass@1_high"])}, ${Number(last["eval/n"])} problems${first ? `; before ${percent(first["eval/pass@1"])}` : ""}`
        : "not measured",
    ),
    tile("time", clock(seconds), ""),
    cost == null ? "" : tile("money", `$${number(cost)}`, "up to the last step"),
    "</section>",
  ].join("\n");
}

const reasonOf = (text: string | undefined) =>
  text === undefined ? "" : `<p class="bad"><b>The run failed:</b> ${untrustedHtml(text)}</p>`;

function findingsOf(index: RunIndex): string {
  const { causes } = index.view.findings;
  if (causes.length === 0) return "";
  const known = (finding: Finding, since: number) => `<code>${untrustedHtml(finding.id)}</code> after step ${since}`;
  const items = causes.map(({ level, root: { since, finding }, symptoms }) => {
    const followed = symptoms.map((one) => `${untrustedHtml(one.finding.message)} ${known(one.finding, one.since)}`);
    return [
      `<li class="${escapeHtml(level)}"><b>${escapeHtml(level)}: ${untrustedHtml(finding.message)}</b> ${known(finding, since)}`,
      `<br>${untrustedHtml(finding.means)}<br>${untrustedHtml(finding.remedy)}${finding.command ? `<pre>${untrustedHtml(finding.command)}</pre>` : ""}`,
      followed.length === 0 ? "" : details(`What followed from it: ${followed.length}`, list(followed)),
      "</li>",
    ].join("\n");
  });
  return section("Findings", `<ul class="findings">${items.join("\n")}</ul>`);
}

function curvesOf(index: RunIndex): string {
  const { steps: done, metricNames } = index.view;
  const { steps, columns: figures } = sliceOf(done, [...metricNames]);
  const evaluations = infoOf(index).evaluations.filter(({ metrics }) => metrics["eval/pass@1"] !== undefined);
  const figure = (name: string) => evaluations.map(({ metrics }) => Number(metrics[name]));
  const pass1 = pass1Figure(
    evaluations.map(({ step }) => step),
    [pass1Curve("Pass@1", "orange", figure)],
  );
  const [first, ...others] = metricCharts.map(({ lines, ...curve }) =>
    figureOf({
      ...curve,
      steps,
      lines: lines.map(([name, label, color]) => ({ label, color, values: figures[name] ?? [] })),
    }),
  );
  return section("Curves", `<div class="charts">${[first, pass1, ...others].join("\n")}</div>`);
}

function evaluationsOf(index: RunIndex): string {
  const steps = [...index.view.evaluations.keys()].sort((a, b) => a - b);
  if (steps.length < 2) return "";
  const [from, to] = [steps[0]!, steps.at(-1)!];
  const { rows, sources } = compareEvaluationsOf(index.view, from, to);
  const questions = new Map(readGroups(index, "eval", to).map(({ group, question }) => [group, question]));
  const known = rows.filter(
    (row): row is typeof row & { before: number; after: number } => row.before !== null && row.after !== null,
  );
  const named = (title: string, belongs: (before: number, after: number) => boolean) => {
    const chosen = known.filter(({ before, after }) => belongs(before, after));
    const items = chosen
      .slice(0, maxNamed)
      .map(
        ({ id, groupAfter }) =>
          `<code>${untrustedHtml(id, 120)}</code> ${untrustedHtml(questions.get(groupAfter) ?? "", 300)}`,
      );
    const more = chosen.length > maxNamed ? `and ${chosen.length - maxNamed} more` : "";
    return details(`${title}: ${chosen.length}`, list(items) + more);
  };
  return section(
    `Test problems, from step ${from} to step ${to}`,
    "<table>",
    row(["source", "problems", `Pass@1 after step ${from}`, `after step ${to}`], "th"),
    ...sources.map(({ source, before, after }) =>
      namedRow(untrustedHtml(source, 120), [String((after ?? before)!.problems), interval(before), interval(after)]),
    ),
    "</table>",
    named("gained", (before, after) => after > before),
    named("lost", (before, after) => after < before),
    named("solved in both", (before, after) => after === before && after > 0),
    named("solved in neither", (before, after) => after === before && after === 0),
  );
}

/** Of a few steps over the run, a group from which something could be learnt: what passed, and why the others failed. */
function programsOf(index: RunIndex): string {
  const steps = [...index.view.updates.keys()];
  const chosen = [
    ...new Set(
      Array.from(
        { length: shownSteps },
        (_, at) => steps[Math.round((at * (steps.length - 1)) / Math.max(1, shownSteps - 1))],
      ),
    ),
  ];
  const parts = chosen.flatMap((step) => {
    const groups = step === undefined ? undefined : index.view.updates.get(step)?.groups;
    if (step === undefined || !groups || groups.length === 0) return [];
    const best = groups.find(({ outcome }) => outcome === "mixed") ?? groups[0]!;
    const [found] = readBatch(index, "train", best.batch, best.group).groups;
    if (!found) return [];
    const group = detailsOf(found);
    const ordered = [...group.samples].sort((a, b) => (b.reward ?? -9) - (a.reward ?? -9));
    const seen = new Set<string>();
    const different = ordered.filter(({ code, text }) => {
      const key = code ?? text;
      if (seen.has(key)) return false;
      seen.add(key);
      return true;
    });
    const shown = [...different.slice(0, 1), ...different.slice(1).slice(-(shownPrograms - 1))];
    return [
      `<h3>Step ${step}, group ${group.group}: ${untrustedHtml(group.problem, 200)} <small>${group.samples.filter(({ verdict }) => verdict === "pass").length} of ${group.samples.length} passed</small></h3>`,
      group.question === null ? "" : `<blockquote>${untrustedHtml(group.question, 4000)}</blockquote>`,
      `<div class="programs">${shown.map((sample) => programOf(sample, found)).join("\n")}</div>`,
    ];
  });
  return parts.length === 0 ? "" : section("Programs", ...parts);
}

function programOf(sample: SampleDetail, group: BatchGroup): string {
  const { failure } = sample;
  const row = (name: string, text: string) => `<dt>${name}</dt><dd><pre>${untrustedHtml(text, 800)}</pre></dd>`;
  return [
    `<article class="${kindOf(sample)}"><p><b>${signs[kindOf(sample)]} ${untrustedHtml(sample.status)}</b> reward ${number(sample.reward)} · advantage ${number(sample.advantage)} · ${sample.tokens} tokens</p>`,
    sample.episode === null ? "" : conversationOf(sample.episode, group, sample.sample),
    `<pre>${sample.code === null ? untrustedHtml(sample.text) : codeHtml(sample.code, sample.syntax)}</pre>`,
    sample.message ? `<p class="bad">${untrustedHtml(sample.message, 500)}</p>` : "",
    failure
      ? `<p>Test ${failure.testIndex} failed${sample.failedLine === undefined ? "" : `, at line ${sample.failedLine}`}</p><dl>${row("input", failure.input)}${row("expected", failure.expected)}${row("printed", failure.printed)}${failure.stderr === "" ? "" : row("stderr", failure.stderr)}</dl>`
      : "",
    "</article>",
  ].join("\n");
}

/** An episode, turn by turn; its last answer stands beneath. */
function conversationOf(line: string, group: BatchGroup, sample: number): string {
  const message = (who: string, text: string) => `<p><small>${who}</small></p><pre>${untrustedHtml(text, 800)}</pre>`;
  const turns = turnsOf(group, sample).flatMap(({ turn, added, text, calls, reward }) => [
    ...added.map(({ role, content }) => message(untrustedHtml(role), content)),
    message(`turn ${turn}${reward === null ? "" : ` · reward ${number(reward)}`}`, [text, ...calls].join("\n").trim()),
  ]);
  return details(untrustedHtml(line), turns.join("\n"));
}

function configOf(index: RunIndex): string {
  const { config, sessions, notes } = infoOf(index);
  const shown = (value: unknown) =>
    untrustedHtml(typeof value === "string" ? value : (JSON.stringify(value) ?? "unset"), 400);
  const changes = sessions.flatMap(({ changes }, session) =>
    changes.map(({ key, was, is }) =>
      row([String(session + 1), `<code>${untrustedHtml(key)}</code>`, shown(was), shown(is)]),
    ),
  );
  const rows = Object.entries(config).map(([key, value]) => namedRow(untrustedHtml(key), [shown(value)]));
  const texts = notes.map(({ text }) => untrustedHtml(text, 400));
  return [
    changes.length === 0
      ? ""
      : section(
          "Changed on resume",
          `<table>${row(["session", "key", "was", "became"], "th")}${changes.join("")}</table>`,
        ),
    texts.length === 0 ? "" : section("Warnings and events", details(String(texts.length), list(texts))),
    section("Config", details(`${rows.length} settings`, `<table>${rows.join("\n")}</table>`)),
  ].join("\n");
}

const interval = (rate: Rate | null) =>
  rate ? `${percent(rate.rate)} <small>${percent(rate.low)} to ${percent(rate.high)}</small>` : "–";
const number = (value: number | null | undefined) => (value == null ? "–" : String(Number(value.toPrecision(3))));
const percent = (value: number | null | undefined) => (value == null ? "–" : percentOf(value));
