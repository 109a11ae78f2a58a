// How a verdict looks: a sign and a word, never colour alone.
// @ts-check
import { h, plain, show, signed } from "./dom.js";
import { kindOf, signs } from "./text.js";

/** @import { SampleSummary } from "../details.ts" */

export { kindOf };

/** @param {string} status */
export const words = (status) => plain(status).replaceAll("_", " ");

/** @param {{ verdict: string | null, status: string }} sample @param {string} [more] */
export function badge(sample, more = "") {
  const kind = kindOf(sample);
  const sign = h("span", { "aria-hidden": "true" }, `${signs[kind]} `);
  return h("span", { class: `badge ${kind}` }, sign, words(sample.status), more);
}

/** @param {SampleSummary} sample @param {string} href */
export function chip(sample, href) {
  const kind = kindOf(sample);
  const text = `answer ${sample.sample}: ${words(sample.status)}, reward ${show(sample.reward)}, advantage ${signed(sample.advantage)}, ${sample.tokens} tokens${sample.truncated ? ", cut" : ""}${sample.flags.length > 0 ? `, flags ${sample.flags.join(" ")}` : ""}`;
  return h(
    "a",
    { class: `chip ${kind}${sample.flags.length > 0 ? " flagged" : ""}`, href, title: text, "aria-label": text },
    signs[kind],
  );
}

/** @type {Record<string, string>} */
export const outcomes = { mixed: "mixed", "all-pass": "all right", "all-fail": "all wrong", ungraded: "ungraded" };
