// What the diagnosis found, the worst first: evidence, what it most likely means, what to do.
// @ts-check
import { h, plain, replace, show, untrusted } from "./dom.js";

/** @type {Record<string, string>} */
const marks = { error: "✕", warning: "!", note: "i" };

/** @param {HTMLElement} place @param {any[]} findings @param {import("./app.js").Context} context */
export function drawFindings(place, findings, context) {
  const text = JSON.stringify(findings);
  if (place.dataset.drawn === text) return;
  // Those that a person has opened stay open.
  const opened = [...place.querySelectorAll("details[open]")];
  const open = new Set(opened.map((element) => /** @type {HTMLElement} */ (element).dataset.id));
  place.dataset.drawn = text;
  replace(
    place,
    findings.map((finding) => drawFinding(finding, open.has(finding.id), context)),
  );
}

/** @param {any} finding @param {boolean} open @param {import("./app.js").Context} context */
function drawFinding(finding, open, context) {
  const { id, level, message, steps, figures = [], samples = [], means, remedy, command, since, action } = finding;
  const [first, last] = steps ?? [since, since];
  const where = first === last ? `step ${first}` : `steps ${first} to ${last}`;
  return h(
    "details",
    { class: `finding ${plain(level)}`, "data-id": id, open },
    h(
      "summary",
      {},
      h("span", { class: "mark", "aria-hidden": "true" }, marks[level] ?? "i"),
      h("span", { class: "offscreen" }, `${plain(level)}: `),
      h("strong", {}, untrusted(message)),
      h("span", { class: "quiet" }, ` ${where}${action === "none" ? "" : `, ${plain(action)}`}`),
    ),
    h("p", {}, untrusted(means)),
    h("p", {}, h("strong", {}, "What to do: "), untrusted(remedy)),
    command ? h("pre", { class: "command" }, untrusted(command)) : null,
    h(
      "p",
      { class: "quiet" },
      h("code", {}, plain(id)),
      figures
        .slice(0, 12)
        .map(
          (/** @type {any} */ { name, step, value }) =>
            ` · ${plain(name)}${step === undefined ? "" : ` at step ${step}`} ${typeof value === "number" ? show(value, 4) : plain(value)}`,
        ),
      " · ",
      h("a", { href: context.link(`step/${first}`) }, `open step ${first}`),
    ),
    samples.length === 0
      ? null
      : h(
          "p",
          {},
          "Look at ",
          samples
            .slice(0, 8)
            .map((/** @type {any} */ { step, group, sample, problem }) => [
              h(
                "a",
                { href: context.link(`step/${step}/group/${group}/sample/${sample}`) },
                untrusted(problem),
                ` (step ${step})`,
              ),
              " ",
            ]),
        ),
  );
}
