// One group: its problem, and its programs side by side with verdict, reward, advantage and the first failing test; a diff of any two.
// @ts-check
import { ask, runPath } from "./api.js";
import { codeNodes } from "./code.js";
import { diffBlock } from "./diff.js";
import { h, inAddress, picker, plain, replace, show, signed, textBlock, untrusted } from "./dom.js";
import { walkable } from "./keys.js";
import { badge, kindOf, outcomes } from "./verdict.js";

/** @import { SampleDetail, SampleSummary } from "../details.ts" */
/** @import { Answer, GroupDetail } from "../routes.ts" */

/** @type {import("./app.js").View} */
export async function groupView(place, context) {
  const {
    numbers: [batch, number],
    words,
    link,
    keys,
    query,
  } = context;
  const phase = words[0];
  const path = `${phase}/${batch}/group/${number}`;
  /** @type {GroupDetail} */
  const group = await ask(`${runPath(context.run)}/${path}`, { signal: context.signal });
  context.title(`group ${number} of step ${batch} · ${context.run}`);
  context.crumbs.push(...groupCrumbs(phase, batch, number));
  const samples = group.samples;
  const same = firstOf(samples);
  /** The two that are compared: from the address, else one that passed and one that failed. @type {number[]} */
  let chosen = (query.get("diff") ?? "")
    .split(",")
    .filter(Boolean)
    .map(Number)
    .filter((index) => samples[index]);
  const difference = h("section.difference", { "aria-label": "Diff of two answers" });
  /** @type {Map<number, HTMLInputElement>} */
  const boxes = new Map();
  const drawDifference = () => {
    for (const [index, box] of boxes) box.checked = chosen.includes(index);
    if (chosen.length < 2) replace(difference);
    else {
      const [a, b] = chosen.map((index) => samples[index]);
      replace(
        difference,
        h(
          "div.row",
          h("h2", `Answers ${a.sample} and ${b.sample}`),
          badge(a),
          h("span.quiet", "against"),
          badge(b),
          h("span.room"),
          h("button", { type: "button", onclick: () => choose([]) }, "Close"),
        ),
        diffBlock(programOf(a), programOf(b)),
      );
    }
  };
  /** @param {number[]} next */
  const choose = (next) => {
    chosen = next.slice(-2);
    const query_ = chosen.length === 2 ? `?diff=${chosen.join(",")}` : "";
    history.replaceState(null, "", link(path) + query_);
    drawDifference();
  };
  const cards = samples.map((sample) =>
    card(sample, same.get(sample.sample) ?? sample.sample, link(`${path}/sample/${sample.sample}`), boxes, () => {
      const on = boxes.get(sample.sample)?.checked;
      choose(on ? [...chosen, sample.sample] : chosen.filter((index) => index !== sample.sample));
    }),
  );
  keys.d = () => {
    if (chosen.length === 2) choose([]);
    else {
      const passed = samples.find(({ verdict }) => verdict === "pass") ?? samples[0];
      const other =
        samples.find((sample) => sample.verdict === "fail" && sample !== passed) ??
        samples.find((sample) => sample !== passed);
      if (other) choose([passed.sample, other.sample]);
    }
    difference.scrollIntoView({ block: "nearest" });
  };
  walkable(keys, () => cards.filter((element) => !element.hidden));
  if (number > 0) keys.ArrowLeft = () => context.go(`${phase}/${batch}/group/${number - 1}`);
  keys.ArrowRight = () => context.go(`${phase}/${batch}/group/${number + 1}`);

  const filter = (/** @type {string} */ kind) => {
    for (const [index, element] of cards.entries()) {
      const sample = samples[index];
      element.hidden =
        kind === "different"
          ? (same.get(sample.sample) ?? sample.sample) !== sample.sample
          : kind !== "all" && kindOf(sample) !== kind;
    }
  };
  place.append(
    h(
      "div.row",
      h(
        "h1",
        `Group ${number} `,
        h("span.quiet", phase === "step" ? `of step ${batch}` : `of the evaluation at step ${batch}`),
      ),
      group.outcome ? h("span", { class: `outcome ${group.outcome}` }, outcomes[group.outcome]) : null,
      group.skipped ? h("span.quiet", "equal rewards: not trained on") : null,
    ),
    h(
      "p",
      "Problem ",
      h("a", { href: link(`problem/${inAddress(group.problem)}`) }, untrusted(group.problem)),
      h(
        "span.quiet",
        ` · ${plain(group.source)} · answered by policy ${group.policy} in ${((group.end - group.start) / 1000).toFixed(1)} s`,
      ),
    ),
    statement(group),
    h(
      "div.row",
      h("h2", `${samples.length} answers`),
      h(
        "span.quiet",
        picker(
          "show",
          [
            ["all", "all"],
            ["different", "different programs"],
            ["pass", "passed"],
            ["fail", "failed"],
            ["format", "without a program"],
            ["ungraded", "ungraded"],
          ],
          "all",
          filter,
        ),
      ),
      h("span.quiet", "choose two for a diff, or press d"),
    ),
    difference,
    h("div.programs", cards),
  );
  drawDifference();
}

/** The way to a group. @param {string} phase @param {number} batch @param {number} number */
export const groupCrumbs = (phase, batch, number) => [
  phase === "step" ? { label: "Overview", path: "" } : { label: "Evaluations", path: "evals" },
  { label: phase === "step" ? `step ${batch}` : `evaluation ${batch}`, path: `${phase}/${batch}` },
  { label: `group ${number}`, path: `${phase}/${batch}/group/${number}` },
];

/** What was asked, and beneath it as the model saw it. @param {GroupDetail} group @returns {HTMLElement} */
export function statement({ question, prompt }) {
  return h(
    "section.card.statement",
    h("h2", "Question"),
    question === null
      ? h("p.quiet", "The journal has the prompt alone.")
      : textBlock(question, { class: "question", label: "question" }),
    prompt.text === null
      ? h("p.quiet", "The prompt cannot be shown: ", untrusted(prompt.note ?? ""))
      : h(
          "details",
          { open: question === null },
          h("summary", "Prompt, as the model saw it"),
          textBlock(prompt.text, { label: "prompt" }),
        ),
  );
}

/** @param {SampleDetail | Answer} sample */
export const programOf = (sample) => sample.code ?? sample.text;

/** For each answer, the first one with the same program. @param {SampleSummary[]} samples */
function firstOf(samples) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  /** @type {Map<number, number>} */
  const first = new Map();
  for (const { sample, codeHash } of samples) {
    if (codeHash === null) continue;
    if (!seen.has(codeHash)) seen.set(codeHash, sample);
    first.set(sample, /** @type {number} */ (seen.get(codeHash)));
  }
  return first;
}

/** @param {SampleDetail} sample @param {number} same @param {string} href @param {Map<number, HTMLInputElement>} boxes @param {() => void} onChoose */
function card(sample, same, href, boxes, onChoose) {
  const box = /** @type {HTMLInputElement} */ (
    h("input", { type: "checkbox", onchange: onChoose, "aria-label": `answer ${sample.sample} in the diff` })
  );
  boxes.set(sample.sample, box);
  return h(
    "article",
    { class: `program ${kindOf(sample)}`, "aria-label": `answer ${sample.sample}` },
    h(
      "header",
      h("a", { href }, h("strong", `answer ${sample.sample}`)),
      badge(sample),
      h("span.room"),
      h("label.quiet", box, " diff"),
    ),
    h("p.quiet", facts(sample)),
    same === sample.sample ? null : h("p.quiet", `the same program as answer ${same}`),
    sample.code === null
      ? [
          h("p.quiet", "No program in this answer:"),
          textBlock(sample.text, { label: `answer ${sample.sample}`, total: sample.textLength, first: 2000 }),
        ]
      : textBlock(sample.code, {
          class: "code",
          label: `program of answer ${sample.sample}`,
          render: codeNodes(sample),
          first: 4000,
        }),
    failure(sample),
  );
}

/** @param {SampleDetail | Answer} sample */
export const facts = (sample) =>
  [
    `reward ${show(sample.reward)}`,
    `advantage ${signed(sample.advantage)}`,
    sample.total > 0 ? `${sample.passed} of ${sample.total} tests` : "",
    typeof sample.episode === "string" ? plain(sample.episode) : "",
    `${sample.tokens} tokens${sample.truncated ? ", cut at the limit" : ""}`,
    sample.flags.length > 0 ? `flags: ${plain(sample.flags.join(", "))}` : "",
  ]
    .filter(Boolean)
    .join(" · ");

/** The first failing test. @param {SampleDetail | Answer} sample */
export function failure(sample) {
  const { failure: failed, message } = sample;
  const parts = [];
  if (message) parts.push(h("p.bad", untrusted(message.slice(0, 2000))));
  if (failed) {
    const row = (/** @type {string} */ label, /** @type {string} */ text, kind = "") => [
      h("dt", label),
      h("dd", text === "" ? h("span.quiet", "nothing") : textBlock(text, { class: kind, label, first: 1500 })),
    ];
    parts.push(
      h(
        "h3",
        `Test ${failed.testIndex} failed${sample.failedLine ? `, at line ${sample.failedLine} of the program` : ""}`,
      ),
      h(
        "dl.failure",
        row("input", failed.input),
        row("expected", failed.expected, "good"),
        row("printed", failed.printed, "wrong"),
        failed.stderr === "" ? null : row("stderr", failed.stderr),
      ),
    );
  }
  return parts.length > 0 ? h("div.why", parts) : null;
}
