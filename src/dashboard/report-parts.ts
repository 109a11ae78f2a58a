// What pages to send are made of: the frame that lets nothing load and no script run, and charts with their captions.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { escapeHtml } from "../core/html.ts";
import { type Curve, knownCurves, type Plot, shortFigure, svgPlot, svgTag } from "../runs/svg-plot.ts";
import { untrustedHtml } from "./html.ts";

/** The only style; its hash stands in the page's own Content-Security-Policy. */
const style = readFileSync(new URL("./report.css", import.meta.url), "utf8");
const styleHash = createHash("sha256").update(style).digest("base64");

/** A whole page of sections that are HTML already. */
export function pageOf(title: string, sections: readonly string[]): string {
  const policy = `default-src 'none'; style-src 'sha256-${styleHash}'; img-src data:; base-uri 'none'; form-action 'none'`;
  return [
    "<!doctype html>",
    `<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">',
    `<meta name="referrer" content="no-referrer"><title>${untrustedHtml(title)}</title><style>${style}</style></head><body><main>`,
    ...sections,
    "</main></body></html>",
    "",
  ].join("\n");
}

/** Parts under a heading. */
export const section = (title: string, ...parts: readonly string[]): string =>
  `<section><h2>${title}</h2>${parts.join("\n")}</section>`;

const cellsOf = (cells: readonly string[], tag: "td" | "th") =>
  cells.map((cell) => `<${tag}>${cell}</${tag}>`).join("");

/** A row of a table. */
export const row = (cells: readonly string[], tag: "td" | "th" = "td"): string => `<tr>${cellsOf(cells, tag)}</tr>`;

/** A row whose first cell is its head. */
export const namedRow = (name: string, cells: readonly string[]): string =>
  `<tr><th scope="row">${name}</th>${cellsOf(cells, "td")}</tr>`;

/** What a line opens when it is clicked. */
export const details = (summary: string, inside: string): string =>
  `<details><summary>${summary}</summary>${inside}</details>`;

export const list = (items: readonly string[]): string =>
  `<ul>${items.map((item) => `<li>${item}</li>`).join("\n")}</ul>`;

const chartFrame = { width: 460, height: 210, top: 8 };

/** A chart with its caption, or nothing where there is nothing to draw. */
export function figureOf({ title, hint, ...plot }: Plot & { title: string; hint?: string }): string {
  const drawn = svgPlot(plot, chartFrame);
  if (drawn.length === 0) return "";
  const legend = knownCurves(plot.lines).map(({ label, color, values }) => {
    const newest = values.findLast((value) => value !== null);
    return `<span><i class="key ${color}"></i>${escapeHtml(label)} <b>${newest == null ? "" : shortFigure(newest)}</b></span>`;
  });
  return [
    `<figure><figcaption><b>${escapeHtml(title)}</b> <small>${escapeHtml(hint ?? "")}</small></figcaption>`,
    svgTag(title, chartFrame),
    ...drawn,
    `</svg><p class="legend">${legend.join("")}</p></figure>`,
  ].join("\n");
}

/** The chart of evaluations. */
export const pass1Figure = (steps: readonly number[], lines: readonly Curve[]): string =>
  figureOf({ title: "Pass@1", hint: "test problems, 95% interval", range: [0, 1], steps, lines });
