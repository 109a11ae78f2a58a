// The keyboard: every view names its own keys; these are the ones that are everywhere.
// @ts-check
import { h } from "./dom.js";

const everywhere = [
  ["j / k", "next / previous row, group, answer"],
  ["← / →", "previous / next step; on a chart, move along it"],
  ["Enter", "open what is chosen; on a chart, its step"],
  ["Esc / u", "one level up"],
  ["d", "in a group: diff of the two chosen answers"],
  ["t", "in an answer: colour its tokens"],
  ["o p e c r", "overview, problems, evaluations, config, runs"],
  ["?", "this list"],
];

/** @param {() => Record<string, () => void>} current */
export function bindKeys(current) {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    // Where letters are typed they are letters.
    const typing = target.matches("select, textarea, input:not([type=checkbox])");
    if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
    if (event.key === "?") {
      event.preventDefault();
      showKeys();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    const name = event.key === "u" ? "Escape" : event.key;
    const act = current()[name];
    if (!act || (name === "Enter" && target !== document.body && target.id !== "main")) return;
    event.preventDefault();
    act();
  });
}

export function showKeys() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = /** @type {HTMLDialogElement} */ (
    h(
      "dialog.card",
      { "aria-labelledby": "keys-title" },
      h("h2", { id: "keys-title" }, "Keys"),
      h(
        "table.keys",
        h(
          "tbody",
          everywhere.map(([key, does]) => h("tr", h("th", { scope: "row" }, h("kbd", key)), h("td", does))),
        ),
      ),
      h("form", { method: "dialog" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    )
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * Rows that j and k walk along and Enter opens. `items` are elements with a link in them.
 * @param {Record<string, () => void>} keys @param {() => HTMLElement[]} items
 */
export function walkable(keys, items) {
  let at = -1;
  const move = (/** @type {number} */ by) => {
    const list = items();
    if (list.length === 0) return;
    list[at]?.classList.remove("chosen");
    at = Math.max(0, Math.min(list.length - 1, at + by));
    const item = list[at];
    item.classList.add("chosen");
    item.scrollIntoView({ block: "nearest", inline: "nearest" });
    const focus = item.matches("a, button") ? item : item.querySelector("a, button");
    /** @type {HTMLElement | null} */ (focus)?.focus({ preventScroll: true });
  };
  keys.j = () => move(1);
  keys.k = () => move(-1);
}
