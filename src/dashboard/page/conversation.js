// An episode as a conversation: what was said, which tools were called with what and gave what, what each turn was worth, how it ended.
// @ts-check
import { count, h, plain, show, signed, textBlock, untrusted } from "./dom.js";

/** @import { SampleTurn } from "../../runs/turns.ts" */
/** @import { Answer } from "../routes.ts" */

/** @param {Answer} sample @returns {HTMLElement | null} */
export function conversation({ episode, talk }) {
  if (talk.length === 0) return null;
  return h(
    "section.card.conversation",
    { "aria-label": "Conversation" },
    h("h2", "Conversation"),
    episode === null ? null : h("p", plain(episode.line)),
    h(
      "ol.turns",
      talk.map((turn, place) => said(turn, talk[place - 1]?.turn ?? null)),
    ),
    episode === null ? null : figures(episode),
  );
}

/** @param {SampleTurn} turn @param {number | null} before */
function said({ turn, parent, counts, added, rewritten, text, calls, tokens, truncated, reward, seconds }, before) {
  const goesOn =
    rewritten !== null
      ? `a sequence of its own: ${rewritten}`
      : parent === before
        ? ""
        : parent === null
          ? "begins anew"
          : `goes on from turn ${parent}`;
  const facts = [
    `${count(tokens)} tokens${truncated ? ", cut at the limit" : ""}`,
    `${show(seconds)} s`,
    reward === null ? "" : `reward ${signed(reward)}`,
    counts ? "" : "not asked for in the end: trained on nowhere",
    goesOn,
  ];
  return h(
    "li",
    { class: `turn${counts ? "" : " uncounted"}`, value: turn },
    added.map((message) =>
      h(
        "div",
        { class: `said ${message.role === "tool" ? "tool" : "user"}` },
        h("h3", message.role === "tool" ? "tool gives" : plain(message.role)),
        textBlock(message.content, { label: plain(message.role), first: 3000 }),
      ),
    ),
    h(
      "div.said.assistant",
      h("h3", `turn ${turn} `, h("span.quiet", plain(facts.filter(Boolean).join(" · ")))),
      text === "" && calls.length > 0 ? null : textBlock(text, { label: `turn ${turn}`, first: 3000 }),
      calls.map((call) => h("p.call", h("span.quiet", "calls "), h("code", untrusted(call)))),
    ),
  );
}

/** What the environment wrote down. @param {NonNullable<Answer["episode"]>} episode */
function figures({ metrics, log, ownSeconds }) {
  const rows = [...Object.entries(metrics).map(([name, value]) => [name, show(value, 5)]), ...Object.entries(log)];
  return h(
    "details",
    { open: rows.length > 0 && rows.length < 9 },
    h("summary", `${rows.length} entries of the environment · ${show(ownSeconds)} s of its own`),
    h(
      "dl.failure",
      rows.map(([name, value]) => [
        h("dt", untrusted(String(name))),
        h("dd", textBlock(String(value), { label: plain(name), first: 1500 })),
      ]),
    ),
  );
}
