// A run as one page to send to a colleague: curves as SVG, no script, nothing loaded from anywhere. Read from the journal.
import { basename } from "node:path";
import { percent as percentOf } from "../core/count.ts";
import { escapeHtml } from "../core/html.ts";
import { type BatchGroup, readBatch } from "../runs/batch.ts";
import { clock } from "../runs/display.ts";
import { metricCharts } from "../runs/metric-names.ts";
import type { Rate } from "../runs/rates.ts";
import { talkOf } from "../runs/talk.ts";
import { detailsOf, readGroups, type SampleDetail } from "./details.ts";
import { codeHtml, untrustedHtml } from "./html.ts";
import { infoOf, pulseOf, sliceOf } from "./info.ts";
import { kindOf, signs } from "./page/text.js";
import { compareEvaluationsOf } from "./problems.ts";
import { figureOf, pageOf } from "./report-parts.ts";
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
  const items = causes.map(({ level, root: { since, finding }, symptoms }) =>
    [
      `<li class="${escapeHtml(level)}"><b>${escapeHtml(level)}: ${untrustedHtml(finding.message)}</b> <code>${untrustedHtml(finding.id)}</code> after step ${since}`,
      `<br>${untrustedHtml(finding.means)}<br>${untrustedHtml(finding.remedy)}${finding.command ? `<pre>${untrustedHtml(finding.command)}</pre>` : ""}`,
      symptoms.length === 0
        ? ""
        : `<details><summary>What followed from it: ${symptoms.length}</summary><ul>${symptoms
            .map(
              (symptom) =>
                `<li>${untrustedHtml(symptom.finding.message)} <code>${untrustedHtml(symptom.finding.id)}</code> after step ${symptom.since}</li>`,
            )
            .join("\n")}</ul></details>`,
      "</li>",
    ].join("\n"),
  );
  return `<section><h2>Findings</h2><ul class="findings">${items.join("\n")}</ul></section>`;
}

function curvesOf(index: RunIndex): string {
  const { steps: done, metricNames } = index.view;
  const { steps, columns: figures } = sliceOf(done, [...metricNames]);
  const evaluations = infoOf(index).evaluations.filter(({ metrics }) => metrics["eval/pass@1"] !== undefined);
  const figure = (name: string) => evaluations.map(({ metrics }) => Number(metrics[name]));
  const pass1 = figureOf({
    title: "Pass@1",
    hint: "test problems, 95% interval",
    steps: evaluations.map(({ step }) => step),
    range: [0, 1],
    lines: [
      {
        label: "Pass@1",
        color: "orange",
        values: figure("eval/pass@1"),
        low: figure("eval/pass@1_low"),
        high: figure("eval/pass@1_high"),
      },
    ],
  });
  const [first, ...others] = metricCharts.map(({ lines, ...curve }) =>
    figureOf({
      ...curve,
      steps,
      lines: lines.map(([name, label, color]) => ({ label, color, values: figures[name] ?? [] })),
    }),
  );
  const charts = [first, pass1, ...others].join("\n");
  return `<section><h2>Curves</h2><div class="charts">${charts}</div></section>`;
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
  const list = (title: string, chosen: typeof known) =>
    `<details><summary>${title}: ${chosen.length}</summary><ul>${chosen
      .slice(0, maxNamed)
      .map(
        ({ id, groupAfter }) =>
          `<li><code>${untrustedHtml(id, 120)}</code> ${untrustedHtml(questions.get(groupAfter) ?? "", 300)}</li>`,
      )
      .join("\n")}</ul>${chosen.length > maxNamed ? `and ${chosen.length - maxNamed} more` : ""}</details>`;
  return [
    `<section><h2>Test problems, from step ${from} to step ${to}</h2>`,
    `<table><tr><th>source</th><th>problems</th><th>Pass@1 after step ${from}</th><th>after step ${to}</th></tr>`,
    ...sources.map(
      ({ source, before, after }) =>
        `<tr><th scope="row">${untrustedHtml(source, 120)}</th><td>${(after ?? before)!.problems}</td><td>${interval(before)}</td><td>${interval(after)}</td></tr>`,
    ),
    "</table>",
    list(
      "gained",
      known.filter(({ before, after }) => after > before),
    ),
    list(
      "lost",
      known.filter(({ before, after }) => after < before),
    ),
    list(
      "solved in both",
      known.filter(({ before, after }) => after === before && after > 0),
    ),
    list(
      "solved in neither",
      known.filter(({ before, after }) => after === before && after === 0),
    ),
    "</section>",
  ].join("\n");
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
  return parts.length === 0 ? "" : `<section><h2>Programs</h2>${parts.join("\n")}</section>`;
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
  const said = (who: string, text: string) => `<p><small>${who}</small></p><pre>${untrustedHtml(text, 800)}</pre>`;
  const turns = talkOf(group, sample).flatMap(({ turn, added, text, calls, reward }) => [
    ...added.map(({ role, content }) => said(untrustedHtml(role), content)),
    said(`turn ${turn}${reward === null ? "" : ` · reward ${number(reward)}`}`, [text, ...calls].join("\n").trim()),
  ]);
  return `<details><summary>${untrustedHtml(line)}</summary>${turns.join("\n")}</details>`;
}

function configOf(index: RunIndex): string {
  const { config, sessions, notes } = infoOf(index);
  const shown = (value: unknown) =>
    untrustedHtml(typeof value === "string" ? value : (JSON.stringify(value) ?? "unset"), 400);
  const changes = sessions.flatMap(({ changes: list }, session) =>
    list.map(
      ({ key, was, is }) =>
        `<tr><td>${session + 1}</td><td><code>${untrustedHtml(key)}</code></td><td>${shown(was)}</td><td>${shown(is)}</td></tr>`,
    ),
  );
  const rows = Object.entries(config).map(
    ([key, value]) => `<tr><th scope="row">${untrustedHtml(key)}</th><td>${shown(value)}</td></tr>`,
  );
  return [
    changes.length === 0
      ? ""
      : `<section><h2>Changed on resume</h2><table><tr><th>session</th><th>key</th><th>was</th><th>became</th></tr>${changes.join("")}</table></section>`,
    notes.length === 0
      ? ""
      : `<section><h2>Warnings and events</h2><details><summary>${notes.length}</summary><ul>${notes.map(({ text }) => `<li>${untrustedHtml(text, 400)}</li>`).join("")}</ul></details></section>`,
    `<section><h2>Config</h2><details><summary>${rows.length} settings</summary><table>${rows.join("\n")}</table></details></section>`,
  ].join("\n");
}

const interval = (rate: Rate | null) =>
  rate ? `${percent(rate.rate)} <small>${percent(rate.low)} to ${percent(rate.high)}</small>` : "–";
const number = (value: number | null | undefined) => (value == null ? "–" : String(Number(value.toPrecision(3))));
const percent = (value: number | null | undefined) => (value == null ? "–" : percentOf(value));
