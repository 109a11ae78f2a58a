// One answer: what it says, why it failed, and its tokens coloured by advantage, log-probability or the gap between sampler and trainer.
// @ts-check
import { ask, runPath } from "./api.js";
import { codeNodes } from "./code.js";
import { conversation } from "./conversation.js";
import { append, h, inAddress, plain, replace, say, show, signed, textBlock, untrusted } from "./dom.js";
import { facts, failure, groupCrumbs, statement } from "./group.js";
import { badge, chip } from "./verdict.js";

/** @import { Answer, GroupDetail, Tokens } from "../routes.ts" */

/** @typedef {Tokens & { kinds: Tokens["parts"] }} DrawnTokens `kinds`: the part that each token is of. */

/** What tokens can be coloured by. */
const modes = [
  { id: "none", label: "shown and written" },
  { id: "advantage", label: "advantage" },
  { id: "logprob", label: "log-probability" },
  { id: "gap", label: "gap to the trainer" },
];
let mode = "logprob";
/** Tokens beyond these are drawn when they are asked for. */
const tokensFirst = 4000;

/** @type {import("./app.js").View} */
export async function completionView(place, context) {
  const {
    numbers: [batch, number, index],
    words,
    link,
    keys,
    go,
  } = context;
  const phase = words[0];
  const groupPath = `${phase}/${batch}/group/${number}`;
  const path = `${groupPath}/sample/${index}`;
  /** @type {[Answer, GroupDetail]} */
  const [sample, group] = await Promise.all([
    ask(`${runPath(context.run)}/${path}`, { signal: context.signal }),
    ask(`${runPath(context.run)}/${groupPath}`, { signal: context.signal }),
  ]);
  context.title(`answer ${index} of group ${number}, step ${batch} · ${context.run}`);
  context.crumbs.push(...groupCrumbs(phase, batch, number), { label: `answer ${index}`, path });
  const to = (/** @type {number} */ next) =>
    next >= 0 && next < group.samples.length && go(`${groupPath}/sample/${next}`);
  keys.j = () => to(index + 1);
  keys.k = () => to(index - 1);
  keys.ArrowRight = keys.j;
  keys.ArrowLeft = keys.k;

  const tokens = h("section.card.tokens-card");
  const drawTokens = tokensPart(tokens, context, path, sample);
  keys.t = () => {
    const at = modes.findIndex(({ id }) => id === mode);
    mode = modes[(at + 1) % modes.length].id;
    drawTokens();
    tokens.scrollIntoView({ block: "nearest" });
  };
  const prose = sample.code === null ? "" : "The answer as it came, with the text around the program:";
  place.append(
    h("div.row", h("h1", `Answer ${index} `, h("span.quiet", `of group ${number}, ${phase} ${batch}`)), badge(sample)),
    h("p", "Problem ", h("a", { href: link(`problem/${inAddress(group.problem)}`) }, untrusted(group.problem))),
    statement(group),
    h(
      "nav.chips",
      { "aria-label": "Answers of this group" },
      group.samples.map((other) => {
        const one = chip(other, link(`${groupPath}/sample/${other.sample}`));
        if (other.sample === index) one.setAttribute("aria-current", "true");
        return one;
      }),
    ),
    h(
      "p",
      facts(sample),
      sample.wallMs === undefined
        ? ""
        : ` · judged in ${show(sample.wallMs / 1000)} s${sample.cached ? " (known already)" : ""}`,
    ),
    conversation(sample) ?? "",
    judgement(sample),
    tokens,
    prose === ""
      ? h("span")
      : h("details.card", h("summary", prose), textBlock(sample.text, { label: "answer", total: sample.textLength })),
    h(
      "p",
      h(
        "a",
        { href: link(`${groupPath}?diff=${pairFor(group, index).join(",")}`) },
        "Diff with another answer of the group",
      ),
    ),
  );
  drawTokens();
}

/** The program, or the answer, beside why it was judged so. @param {Answer} sample */
function judgement(sample) {
  const isTold = sample.talk.length > 0 && sample.code === null;
  const reason = failure(sample);
  // The conversation has its last answer already.
  if (isTold) return reason ? h("section.card", h("h2", "Why"), reason) : h("span");
  return h(
    "div.two",
    h(
      "section.card",
      h("h2", sample.code === null ? "Answer" : "Program"),
      sample.code === null
        ? textBlock(sample.text, { label: "answer", total: sample.textLength })
        : textBlock(sample.code, { class: "code", label: "program", render: codeNodes(sample) }),
    ),
    h(
      "section.card",
      h("h2", sample.verdict === "pass" ? "Every test passed" : sample.verdict === null ? "Not judged yet" : "Why"),
      reason ?? h("p.quiet", why(sample)),
    ),
  );
}

/** @param {Answer} sample */
function why(sample) {
  if (sample.verdict === "pass") return `${sample.passed} of ${sample.total} tests.`;
  if (sample.status === "format_error") return "The answer has no closed code block, so there was nothing to run.";
  return "The journal has no failing test for this answer.";
}

/** Answers of the other verdict are the ones to compare with. @param {GroupDetail} group @param {number} index */
function pairFor(group, index) {
  const own = group.samples[index];
  const other =
    group.samples.find(({ verdict, sample }) => sample !== index && verdict !== own.verdict) ??
    group.samples.find(({ sample }) => sample !== index);
  return other ? [index, other.sample] : [index];
}

/** @param {HTMLElement} place @param {import("./app.js").Context} context @param {string} path @param {Answer} sample */
function tokensPart(place, context, path, sample) {
  const readout = h("p.readout", { "aria-live": "polite" }, "Point at a token, or move with the arrow keys.");
  const body = h("div.text.tokens", {
    tabindex: "0",
    role: "region",
    "aria-label": "Tokens of the answer",
    dir: "ltr",
  });
  const legend = h("p.quiet");
  const choice = h("div.choice", { role: "group", "aria-label": "Colour tokens by" });
  /** @type {DrawnTokens | null} */
  let data = null;
  let failed = "";
  place.append(h("div.row", h("h2", "Tokens"), choice), legend, body, readout);
  const load = async () => {
    try {
      /** @type {Tokens} */
      const answer = await ask(`${runPath(context.run)}/${path}/tokens`, { signal: context.signal });
      data = { ...answer, kinds: answer.parts.flatMap((part) => Array(part.length).fill(part)) };
    } catch (error) {
      failed = error instanceof Error ? error.message : String(error);
    }
    if (!context.signal.aborted) draw();
  };
  let at = -1;
  const pick = (/** @type {number} */ index) => {
    if (!data || index < 0 || index >= data.pieces.length) return;
    body.querySelector(".picked")?.classList.remove("picked");
    at = index;
    body.children[index]?.classList.add("picked");
    const [own, other] = [data.logprobs[index], data.trained?.[index]];
    const { turn, kind } = data.kinds[index];
    const where = data.parts.length > 1 ? ` of turn ${turn}` : "";
    const token = `token ${index}${where} ${JSON.stringify(plain(data.pieces[index]))}`;
    readout.textContent =
      kind === "context"
        ? `${token}: shown to the model, never trained on`
        : `${token}: log-probability ${show(own)} (p = ${show(own === null ? null : Math.exp(own))})` +
          (other === undefined || other === null
            ? ""
            : `, trainer ${show(other)}, gap ${signed(own === null ? null : own - other)}`) +
          (sample.advantage === null || kind !== "trained" ? "" : `, advantage ${signed(sample.advantage)}`);
  };
  body.addEventListener("pointerover", (event) => {
    const index = /** @type {HTMLElement} */ (event.target).dataset.index;
    if (index !== undefined) pick(Number(index));
  });
  body.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : undefined;
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    pick(at + by);
    say(readout.textContent ?? "");
  });
  const draw = () => {
    replace(
      choice,
      modes.map(({ id, label }) =>
        h(
          "button",
          {
            type: "button",
            "aria-pressed": String(id === mode),
            onclick: () => {
              mode = id;
              draw();
            },
          },
          label,
        ),
      ),
    );
    if (failed) {
      replace(body, h("span.quiet", failed));
      return;
    }
    if (!data) return;
    const values = valuesOf(mode, data, sample);
    legend.textContent = legendOf(mode, data, sample);
    replace(body);
    drawPieces(body, data, values, 0, tokensFirst);
  };
  void load();
  return draw;
}

/** @param {HTMLElement} body @param {DrawnTokens} data @param {(number | null)[]} shades @param {number} from @param {number} amount */
function drawPieces(body, data, shades, from, amount) {
  const { pieces, kinds } = data;
  const to = Math.min(pieces.length, from + amount);
  for (let index = from; index < to; index++) {
    const shade = shades[index];
    const level = shade === null || shade === undefined ? 0 : Math.max(-8, Math.min(8, Math.round(shade * 8)));
    const span = h("span", {
      class: `token ${kinds[index].kind}${level === 0 ? "" : level > 0 ? " up" : " down"}`,
      "data-index": String(index),
    });
    // Eight shades are as many as can be told apart.
    if (level !== 0) span.style.setProperty("--shade", `${5 * Math.abs(level)}%`);
    append(
      span,
      pieces[index].length > 2000 ? untrusted(`${pieces[index].slice(0, 2000)}…`) : untrusted(pieces[index]),
    );
    body.append(span);
  }
  if (to < pieces.length) {
    const more = h(
      "button.more",
      {
        type: "button",
        onclick: () => {
          more.remove();
          drawPieces(body, data, shades, to, 10 * tokensFirst);
        },
      },
      `show ${pieces.length - to} more tokens`,
    );
    body.append(more);
  }
}

/** Shades between −1 and 1. @param {string} by @param {DrawnTokens} data @param {Answer} sample @returns {(number | null)[]} */
function valuesOf(by, data, sample) {
  if (by === "advantage") {
    const { advantage } = sample;
    return data.kinds.map(({ kind }) =>
      advantage === null || kind !== "trained" ? null : Math.max(-1, Math.min(1, advantage)),
    );
  }
  // The less likely, the stronger: a token of probability 1/50 is as strong as it gets.
  if (by === "logprob") return data.logprobs.map((own) => (own === null ? null : -Math.sqrt(Math.min(1, -own / 4))));
  if (by === "gap") return gapsOf(data).map((gap) => (gap === null ? null : Math.max(-1, Math.min(1, gap / 0.5))));
  return data.pieces.map(() => null);
}

/** What the sampler gave each token above what the trainer did. @param {DrawnTokens} data */
const gapsOf = ({ logprobs, trained }) =>
  logprobs.map((own, index) => {
    const other = trained?.[index] ?? null;
    return own === null || other === null ? null : own - other;
  });

/** @param {string} by @param {DrawnTokens} data @param {Answer} sample */
function legendOf(by, data, sample) {
  const notes = data.note ? ` Tokens are shown by number: ${data.note}` : "";
  const mean = (/** @type {number[]} */ list) =>
    list.length === 0 ? null : list.reduce((sum, value) => sum + value, 0) / list.length;
  const known = (/** @type {(number | null)[]} */ list) => list.filter((value) => value !== null);
  const lengthOf = (/** @type {RegExp} */ kind) =>
    data.parts.reduce((sum, part) => sum + (kind.test(part.kind) ? part.length : 0), 0);
  const written = lengthOf(/sampled|trained/);
  if (by === "advantage")
    return `Every token that is trained on has its answer's advantage: ${signed(sample.advantage)}. Blue pushes up, red down.${notes}`;
  if (by === "logprob")
    return `Stronger is less likely under the sampler; mean ${show(mean(known(data.logprobs)))}, of ${written} tokens.${notes}`;
  if (by === "gap") {
    if (!data.trained)
      return `This answer was not trained on, or its update is not over: the trainer's figures are not known.${notes}`;
    const gaps = known(gapsOf(data));
    const largest = gaps.reduce((most, gap) => Math.max(most, Math.abs(gap)), 0);
    return `Sampler minus trainer, full colour at 0.5; mean ${signed(mean(gaps))}, largest ${show(largest)}. Blue: the sampler found it likelier.${notes}`;
  }
  const shown = lengthOf(/context/);
  return `${written} tokens of the model, ${lengthOf(/trained/)} of them trained on (underlined in blue)${shown > 0 ? `; ${shown} that it was shown in between (gray)` : ""}.${notes}`;
}
