// Builds the page out of elements and text. Text is only ever set as text: nothing that a model or a data set wrote can become markup.
// @ts-check
import { hidden, nameOf } from "./text.js";

export { inAddress, plain } from "./text.js";

/** @typedef {any} Child A node, text, nothing, or a list of these. */
/** @typedef {number | string | null | undefined} Figure */

/**
 * An element: `h("p.quiet", { title: "…" }, "text", child)`. The tag may name classes; properties may be left out. `on…` are listeners,
 * `class`, `aria-…`, `data-…` and the like are attributes.
 * @param {string} tag @param {any[]} given properties and children @returns {HTMLElement}
 */
export function h(tag, ...given) {
  const [name = "", ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length > 0) element.className = classes.join(" ");
  const isProperties = given[0]?.constructor === Object;
  const [properties, ...children] = isProperties ? given : [{}, ...given];
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list") /** @type {any} */ (element)[key] = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** @param {Node} parent @param {Child} child */
export function append(parent, child) {
  if (Array.isArray(child)) for (const one of child) append(parent, one);
  else if (child instanceof Node) parent.appendChild(child);
  else if (child !== null && child !== undefined && child !== false)
    parent.appendChild(document.createTextNode(String(child)));
}

/** @param {Element} parent @param {Child[]} children */
export function replace(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

const names = "http://www.w3.org/2000/svg";
/** @param {string} tag @param {Record<string, any>} attributes @param {(Node | string)[]} children */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(names, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/**
 * Text of a model, a program or a data set, as nodes.
 * @param {string} text @returns {Node[]}
 */
export function untrusted(text) {
  /** @type {Node[]} */
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(hidden)) {
    if (match.index > from) nodes.push(document.createTextNode(text.slice(from, match.index)));
    nodes.push(h("span.hidden-character", { title: "a character that would not be seen" }, nameOf(match[0])));
    from = match.index + match[0].length;
  }
  if (from < text.length) nodes.push(document.createTextNode(text.slice(from)));
  return nodes;
}

const shownFirst = 6000;
const shownMore = 60_000;

/**
 * A block of untrusted text; of a long one the beginning, and more when it is asked for.
 * @param {string} text
 * @param {{ class?: string, label?: string, total?: number, render?: (text: string) => Node[], first?: number }} [options]
 */
export function textBlock(
  text,
  { class: kind = "", label, total = text.length, render = untrusted, first = shownFirst } = {},
) {
  const block = h("pre", {
    class: `text ${kind}`,
    tabindex: "0",
    role: "region",
    "aria-label": label ?? "text",
    dir: "ltr",
  });
  let shown = 0;
  const more = h("button.more", { type: "button", onclick: () => grow(shownMore) });
  /** @param {number} by */
  const grow = (by) => {
    let to = Math.min(text.length, shown + by);
    // Not in the middle of a character.
    if (to < text.length && /[\udc00-\udfff]/.test(text[to] ?? "")) to++;
    more.remove();
    append(block, render(text.slice(shown, to)));
    shown = to;
    if (shown < text.length) {
      more.textContent = `show more (${count(text.length - shown)} of ${count(text.length)} characters left)`;
      block.append(more);
    } else if (total > text.length) {
      block.append(h("span.quiet", `\n… cut here; ${count(total - text.length)} more characters`));
    }
  };
  grow(first);
  return block;
}

/**
 * A table that scrolls where it is wider than the page. Cells are children of `td`, the first of a row is its head.
 * @param {string} label @param {Child[]} head @param {Child[][]} rows
 */
export const table = (label, head, rows) =>
  h(
    "div.wide",
    { tabindex: "0", role: "region", "aria-label": label },
    h(
      "table.list",
      h(
        "thead",
        h(
          "tr",
          head.map((cell) => h("th", { scope: "col" }, cell)),
        ),
      ),
      h(
        "tbody",
        rows.map(([first, ...rest]) =>
          h(
            "tr",
            h("th", { scope: "row" }, first),
            rest.map((cell) => h("td", cell)),
          ),
        ),
      ),
    ),
  );

/**
 * A choice with its label; `choices` are values with their texts.
 * @param {string} label @param {(string | number)[][]} choices @param {string | number} chosen @param {(value: string) => void} onChoose
 */
export const picker = (label, choices, chosen, onChoose) =>
  h(
    "label",
    `${label} `,
    h(
      "select",
      {
        onchange: (/** @type {Event} */ event) => onChoose(/** @type {HTMLSelectElement} */ (event.target).value),
      },
      choices.map(([value, text]) => h("option", { value: String(value), selected: value === chosen }, text)),
    ),
  );

/** A rate with its 95% interval. @param {{ rate: Figure, low: Figure, high: Figure } | null | undefined} rate */
export const interval = (rate) =>
  rate ? [percent(rate.rate), " ", h("span.quiet.range", `${percent(rate.low)} to ${percent(rate.high)}`)] : "–";

/** Pass@1 of an evaluation. @param {Readonly<Record<string, number | string | null>> | undefined} metrics */
export const pass1Of = (metrics) =>
  metrics?.["eval/pass@1"] === undefined
    ? null
    : {
        rate: metrics["eval/pass@1"],
        low: metrics["eval/pass@1_low"],
        high: metrics["eval/pass@1_high"],
        n: metrics["eval/n"],
      };

/** A number as people read it; one that JSON has no number for is text. @param {Figure} value @param {number} [digits] */
export function show(value, digits = 3) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return count(value);
  const size = Math.abs(value);
  if (size >= 1e6 || (size < 1e-3 && size > 0)) return value.toExponential(2);
  return String(Number(value.toPrecision(digits)));
}

/** With thin spaces. @param {number} value */
export const count = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u2009");

/** @param {Figure} value */
export const percent = (value) =>
  typeof value !== "number" || !Number.isFinite(value)
    ? "–"
    : `${(100 * value).toFixed(value > 0.995 || value < 0.005 ? 0 : 1)}%`;

/** @param {number | null | undefined} value */
export const signed = (value) =>
  value === null || value === undefined ? "–" : `${value > 0 ? "+" : value < 0 ? "−" : ""}${show(Math.abs(value))}`;

/** @param {number} bytes */
export const size = (bytes) =>
  bytes >= 1e9
    ? `${(bytes / 1e9).toFixed(1)} GB`
    : bytes >= 1e6
      ? `${(bytes / 1e6).toFixed(1)} MB`
      : `${Math.ceil(bytes / 1000)} kB`;

/** 1:02:03 or 2:03. @param {number} seconds */
export function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  return `${hours > 0 ? `${hours}:${two(Math.floor(whole / 60) % 60)}` : Math.floor(whole / 60)}:${two(whole % 60)}`;
}

/** @param {number} at milliseconds since the epoch */
export const when = (at) => new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

/** Says something to those who do not see the screen. @param {string} text */
export function say(text) {
  const said = document.getElementById("said");
  if (said) said.textContent = text;
}
