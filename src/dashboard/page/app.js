// The page: which view the address names, the head above it, keys and themes. Views are functions that fill a place and say how to end.
// @ts-check
import { AskError, ask, RunStore } from "./api.js";
import { compareView } from "./compare.js";
import { completionView } from "./completion.js";
import { configView } from "./config.js";
import { append, h, inAddress, replace } from "./dom.js";
import { evaluationsView, evaluationView } from "./evaluations.js";
import { groupView } from "./group.js";
import { drawHead } from "./head.js";
import { bindKeys } from "./keys.js";
import { overview } from "./overview.js";
import { problemsView, problemView } from "./problems.js";
import { runsView } from "./runs.js";
import { stepView } from "./step.js";
import { applyTheme } from "./theme.js";

/** @import { ListedRun } from "../run-list.ts" */

/**
 * @typedef {{ run: string, numbers: number[], words: string[], query: URLSearchParams, store: RunStore | null, signal: AbortSignal,
 *   link: (path: string) => string, go: (path: string) => void, keys: Record<string, () => void>, onEnd: (end: () => void) => void,
 *   title: (text: string) => void, crumbs: { label: string, path: string }[], tab: string, tabs: { label: string, path: string }[] }} Context
 * @typedef {(place: HTMLElement, context: Context) => void | Promise<void>} View
 */

/**
 * Addresses after the run's name, `N` for a number and `*` for a word, with the tab that each belongs to; a tab opens the first of its own.
 * @type {[string, View, string][]}
 */
const views = [
  ["", overview, "Overview"],
  ["step/N", stepView, "Overview"],
  ["step/N/group/N", groupView, "Overview"],
  ["step/N/group/N/sample/N", completionView, "Overview"],
  ["problems", problemsView, "Problems"],
  ["problem/*", problemView, "Problems"],
  ["evals", evaluationsView, "Evaluations"],
  ["eval/N", evaluationView, "Evaluations"],
  ["eval/N/group/N", groupView, "Evaluations"],
  ["eval/N/group/N/sample/N", completionView, "Evaluations"],
  ["config", configView, "Config"],
];
const tabs = [...new Set(views.map(([, , label]) => label))].map((label) => ({
  label,
  path: views.find(([, , own]) => own === label)?.[0] ?? "",
}));

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const head = /** @type {HTMLElement} */ (document.getElementById("head"));
/** @type {RunStore | null} */
let store = null;
/** @type {{ abort: AbortController, ends: (() => void)[], keys: Record<string, () => void> } | null} */
let shown = null;

/** The part of the page that the address names. */
async function route() {
  for (const end of shown?.ends ?? []) end();
  shown?.abort.abort();
  const abort = new AbortController();
  /** @type {NonNullable<typeof shown>} */
  const mine = { abort, ends: [], keys: {} };
  shown = mine;
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean);
  try {
    const { view, run, rest } = await find(parts);
    if (abort.signal.aborted) return;
    keep(run);
    const pattern = rest.map((part) => (/^\d+$/.test(part) ? "N" : part)).join("/");
    const [shape, draw, tab] = view
      ? ["", view, ""]
      : (views.find(
          ([address]) => address === pattern || address === pattern.replace(/^problem\/.+$/, "problem/*"),
        ) ?? ["", null, ""]);
    if (!draw) throw new AskError(`There is no page ${path}.`, "no-page");
    const place = h("div", { class: `view view-${shape.split("/")[0] || "top"}` });
    const link = (/** @type {string} */ to) => `#/run/${inAddress(run)}${to === "" ? "" : `/${to}`}`;
    /** @type {Context} */
    const context = {
      run,
      numbers: rest.filter((part) => /^\d+$/.test(part)).map(Number),
      words: rest.map(decodeURIComponent),
      query: new URLSearchParams(query),
      store,
      signal: abort.signal,
      link,
      go: (to) => {
        location.hash = to.startsWith("#") ? to : link(to);
      },
      keys: mine.keys,
      onEnd: (end) => mine.ends.push(end),
      title: (text) => {
        document.title = `${text} · Whetstone`;
      },
      crumbs: [],
      tab,
      tabs,
    };
    context.title(run === "" ? "Runs" : run);
    replace(main, h("p.quiet", "Reading the journal…"));
    await draw(place, context);
    if (abort.signal.aborted) return;
    replace(main, place);
    drawHead(head, context);
    place.dispatchEvent(new Event("shown"));
    window.scrollTo(0, 0);
  } catch (error) {
    if (abort.signal.aborted) return;
    const text = error instanceof Error ? error.message : String(error);
    replace(
      main,
      h(
        "div.card.failed",
        { role: "alert" },
        h("h2", "That did not work"),
        h("p", text),
        h("p", h("a", { href: "#/" }, "All runs")),
      ),
    );
    if (!(error instanceof AskError)) console.error(error);
  }
}

/** @param {string[]} parts @returns {Promise<{ view: View | null, run: string, rest: string[] }>} */
async function find(parts) {
  if (parts[0] === "compare") return { view: compareView, run: "", rest: [] };
  if (parts[0] === "run" && parts[1] !== undefined)
    return { view: null, run: decodeURIComponent(parts[1]), rest: parts.slice(2) };
  if (parts[0] === "runs") return { view: runsView, run: "", rest: [] };
  /** @type {{ runs: ListedRun[] }} */
  const { runs } = await ask("runs");
  // A single run is shown at once.
  return runs.length === 1 ? { view: null, run: runs[0].id, rest: [] } : { view: runsView, run: "", rest: [] };
}

/** The stream of the run that is looked at stays open while its pages are. @param {string} run */
function keep(run) {
  if (store?.id === run) return;
  store?.close();
  store = run === "" ? null : new RunStore(run);
  store?.addEventListener("change", () => drawHead(head, null));
}

applyTheme();
bindKeys(() => shown?.keys ?? {});
window.addEventListener("hashchange", () => void route());
append(head, h("a.brand", { href: "#/" }, "Whetstone"));
void route();
