// What pages to send are made of: the frame that lets nothing load and no script run, and charts with their captions.
import { createHash } from "node:crypto";
import { escapeHtml } from "../core/html.ts";
import { knownCurves, type Plot, shortFigure, svgPlot, svgTag } from "../runs/svg-plot.ts";
import { untrustedHtml } from "./html.ts";
import { reportStyle } from "./report-style.ts";

/** A whole page of sections that are HTML already. */
export function pageOf(title: string, sections: readonly string[]): string {
  const policy = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(reportStyle).digest("base64")}'; img-src data:; base-uri 'none'; form-action 'none'`;
  return [
    "<!doctype html>",
    `<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">',
    `<meta name="referrer" content="no-referrer"><title>${untrustedHtml(title)}</title><style>${reportStyle}</style></head><body><main>`,
    ...sections,
    "</main></body></html>",
    "",
  ].join("\n");
}

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
