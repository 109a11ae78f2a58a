// How a verdict looks: a sign and a word, never colour alone.
// @ts-check
import { h, plain, show, signed } from "./dom.js";

const signs = { pass: "✓", fail: "✕", ungraded: "?", waiting: "…" };

/** @param {string | null} verdict */
export const kindOf = (verdict) =>
  verdict === "pass" || verdict === "fail" || verdict === "ungraded" ? verdict : "waiting";

/** @param {string} status */
export const words = (status) => plain(status).replaceAll("_", " ");

/** @param {{ verdict: string | null, status: string }} sample */
export function badge({ verdict, status }) {
  const kind = kindOf(verdict);
  return h("span", { class: `badge ${kind}` }, h("span", { "aria-hidden": "true" }, `${signs[kind]} `), words(status));
}

/** @param {any} sample @param {string} href */
export function chip(sample, href) {
  const kind = kindOf(sample.verdict);
  const text = `answer ${sample.sample}: ${words(sample.status)}, reward ${show(sample.reward)}, advantage ${signed(sample.advantage)}, ${sample.tokens} tokens${sample.truncated ? ", cut" : ""}${sample.flags.length > 0 ? `, flags ${sample.flags.join(" ")}` : ""}`;
  return h(
    "a",
    { class: `chip ${kind}${sample.flags.length > 0 ? " flagged" : ""}`, href, title: text, "aria-label": text },
    signs[kind],
  );
}

/** @type {Record<string, string>} */
export const outcomes = { mixed: "mixed", "all-pass": "all right", "all-fail": "all wrong", ungraded: "ungraded" };
