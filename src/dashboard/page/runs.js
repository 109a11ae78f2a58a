// The list of runs.
// @ts-check
import { ask, runPath } from "./api.js";
import { h, inAddress, percent, replace, show, size, untrusted, when } from "./dom.js";
import { worstError } from "./findings.js";
import { walkable } from "./keys.js";

/** @import { Info, Pulse, Series } from "../info.ts" */
/** @import { ListedRun } from "../run-list.ts" */

/** @type {import("./app.js").View} */
export async function runsView(place, context) {
  /** @type {{ runs: ListedRun[] }} */
  const { runs } = await ask("runs", { signal: context.signal });
  context.title("Runs");
  if (runs.length === 0) {
    place.append(
      h("h1", "Runs"),
      h(
        "p",
        "There is no run here yet. ",
        h("code", "./whet train"),
        " makes one; this page shows it when it is loaded again.",
      ),
    );
    return;
  }
  /** @type {Set<string>} */
  const chosen = new Set();
  const compare = /** @type {HTMLButtonElement} */ (
    h(
      "button",
      {
        type: "button",
        disabled: true,
        onclick: () => context.go(`#/compare?${[...chosen].map((id) => `run=${inAddress(id)}`).join("&")}`),
      },
      "Compare the chosen",
    )
  );
  /** @type {Map<string, HTMLElement>} */
  const rows = new Map();
  const body = h(
    "tbody",
    runs.map((run) => {
      const row = h(
        "tr",
        h(
          "td",
          h("input", {
            type: "checkbox",
            "aria-label": `compare ${run.id}`,
            onchange: (/** @type {Event} */ event) => {
              if (/** @type {HTMLInputElement} */ (event.target).checked) chosen.add(run.id);
              else chosen.delete(run.id);
              compare.disabled = chosen.size < 2;
            },
          }),
        ),
        h("th", { scope: "row" }, h("a", { href: `#/run/${inAddress(run.id)}` }, untrusted(run.id))),
        h("td", run.pid === null ? "" : [h("span.dot.live", { "aria-hidden": "true" }), "live"]),
        h("td", "…"),
        h("td", "…"),
        h("td", "…"),
        h("td", "…"),
        h("td", size(run.bytes)),
        h("td", when(run.changedAt)),
      );
      rows.set(run.id, row);
      return row;
    }),
  );
  walkable(context.keys, () => [...rows.values()]);
  place.append(
    h("div.row", h("h1", "Runs"), h("span.room"), compare),
    h(
      "div.wide",
      { tabindex: "0", role: "region", "aria-label": "Runs" },
      h(
        "table.list",
        h(
          "thead",
          h(
            "tr",
            h("th", { scope: "col" }, h("span.offscreen", "compare")),
            ["run", "state", "model", "steps", "reward", "Pass@1", "journal", "changed"].map((label) =>
              h("th", { scope: "col" }, label),
            ),
          ),
        ),
        body,
      ),
    ),
  );
  // One after another: each is a journal to be read.
  void (async () => {
    for (const run of runs) {
      const row = rows.get(run.id);
      try {
        /** @type {Info & Pulse} */
        const info = await ask(runPath(run.id), { signal: context.signal });
        /** @type {Series} */
        const { columns } = await ask(
          `${runPath(run.id)}/series?name=mean_reward&from=${Math.max(0, info.rows - 20)}`,
          { signal: context.signal },
        );
        const rewards = (columns.mean_reward ?? []).filter((value) => value !== null);
        const measured = info.evaluations.filter(({ metrics }) => metrics["eval/pass@1"] !== undefined);
        const worst = worstError(info);
        const texts = [
          worst ? `${info.state}, ${worst.id}` : info.state,
          String(info.config.model_name ?? "–"),
          String(info.step + 1),
          show(rewards.at(-1)),
          measured.length === 0
            ? "–"
            : measured.length === 1
              ? percent(measured[0].metrics["eval/pass@1"])
              : `${percent(measured[0].metrics["eval/pass@1"])} → ${percent(measured.at(-1)?.metrics["eval/pass@1"])}`,
        ];
        for (const [index, text] of texts.entries()) {
          const cell = row?.children[index + 2];
          if (cell)
            replace(
              cell,
              index === 0 ? h("span", { class: `dot ${worst ? "wrong" : info.state}`, "aria-hidden": "true" }) : null,
              untrusted(text),
            );
        }
      } catch (error) {
        if (context.signal.aborted) return;
        const cell = row?.children[3];
        if (cell) replace(cell, h("span.bad", untrusted(error instanceof Error ? error.message : String(error))));
      }
    }
  })();
}
