// The difference of two programs, line by line and within changed lines, found by jsdiff.
// @ts-check
import Diff from "../vendor/diff/diff/base.js";
import { diffLines } from "../vendor/diff/diff/line.js";
import { append, h, untrusted } from "./dom.js";

/** Programs longer than this are compared as far as this. */
const longest = 60_000;
/** Long enough for any two programs, short enough for two that were made to be slow. */
const timeout = 1000;

/** @extends {Diff<string, string, string>} */
class WordDiff extends Diff {
  /** @override @param {string} text */
  tokenize(text) {
    return text.split(/(\s+|\b)/).filter(Boolean);
  }
}

/** @param {string} a @param {string} b */
export function diffBlock(a, b) {
  const [before, after] = [a, b].map((text) => ensureEnd(text.slice(0, longest)));
  const changes = before === after ? [] : diffLines(before, after, { timeout });
  if (before === after) return h("p.quiet", "The two are the same.");
  const table = h("table.diff", h("caption.offscreen", "Lines taken away and added"));
  if (!changes) {
    return h("p.quiet", "These two are too different to be compared line by line.");
  }
  const body = h("tbody");
  let [left, right] = [1, 1];
  for (let at = 0; at < changes.length; at++) {
    const change = changes[at];
    const next = changes[at + 1];
    if (change.removed && next?.added) {
      const [old, now] = [linesOf(change.value), linesOf(next.value)];
      const pairs = Math.min(old.length, now.length);
      const words = old.slice(0, pairs).map((line, index) => wordsOf(line, now[index]));
      for (const [index, line] of old.entries())
        body.append(row("removed", left++, null, words[index]?.old ?? untrusted(line)));
      for (const [index, line] of now.entries())
        body.append(row("added", null, right++, words[index]?.now ?? untrusted(line)));
      at++;
    } else
      for (const line of linesOf(change.value)) {
        if (change.removed) body.append(row("removed", left++, null, untrusted(line)));
        else if (change.added) body.append(row("added", null, right++, untrusted(line)));
        else body.append(row("same", left++, right++, untrusted(line)));
      }
  }
  table.append(body);
  return h("div.diff-place", { tabindex: "0", role: "region", "aria-label": "Diff" }, table);
}

/** @param {string} kind @param {number | null} left @param {number | null} right @param {Node[]} nodes */
function row(kind, left, right, nodes) {
  const sign = { removed: "−", added: "+", same: " " }[kind];
  const cell = h("td.line");
  append(cell, nodes);
  return h("tr", { class: kind }, h("td.number", left ?? ""), h("td.number", right ?? ""), h("td.sign", sign), cell);
}

/** What changed within a line. @param {string} old @param {string} now */
function wordsOf(old, now) {
  if (old.length + now.length > 2000) return undefined;
  const changes = new WordDiff().diff(old, now, { timeout: 100 });
  if (!changes) return undefined;
  /** @param {boolean} isNew */
  const side = (isNew) =>
    changes
      .filter(({ added, removed }) => (isNew ? !removed : !added))
      .flatMap(({ value, added, removed }) => {
        const text = Array.isArray(value) ? value.join("") : String(value);
        if (!added && !removed) return untrusted(text);
        const mark = h(isNew ? "ins" : "del", {});
        append(mark, untrusted(text));
        return [mark];
      });
  return { old: side(false), now: side(true) };
}

/** @param {string} text */
const linesOf = (text) => text.replace(/\n$/, "").split("\n");
/** @param {string} text */
const ensureEnd = (text) => (text.endsWith("\n") ? text : `${text}\n`);
