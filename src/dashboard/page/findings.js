// What the diagnosis found, by cause, the worst first: evidence, what it most likely means, what to do, and what followed from it.
// @ts-check
import { h, plain, replace, show, untrusted } from "./dom.js";

/** @import { Info } from "../info.ts" */

/** @type {Record<string, string>} */
const marks = { error: "✕", warning: "!", note: "i" };

/** @param {HTMLElement} place @param {Info["causes"]} causes @param {import("./app.js").Context} context */
export function drawFindings(place, causes, context) {
  const text = JSON.stringify(causes);
  if (place.dataset.drawn === text) return;
  // What a person has opened or closed stays so.
  const seen = /** @type {NodeListOf<HTMLDetailsElement>} */ (place.querySelectorAll("details"));
  const open = new Map([...seen].map((element) => [element.dataset.id, element.open]));
  place.dataset.drawn = text;
  replace(
    place,
    causes.map((cause) => drawCause(cause, open, context)),
  );
}

/** The steps that a finding is about. @param {{ steps: readonly [number, number] }} finding */
const where = ({ steps: [first, last] }) => (first === last ? `step ${first}` : `steps ${first} to ${last}`);

/** The worst that was found, where it is an error. @param {Info | null} info */
export const worstError = (info) => info?.causes.find(({ level }) => level === "error");

/** @param {Info["causes"][number]} cause @param {Map<string | undefined, boolean>} open @param {import("./app.js").Context} context */
function drawCause(cause, open, context) {
  const { id, level, message, figures = [], samples = [], means, remedy, command, since, action, symptoms } = cause;
  const steps = cause.steps ?? [since, since];
  return h(
    "details",
    { class: `finding ${plain(level)}`, "data-id": id, open: open.get(id) ?? level !== "note" },
    h(
      "summary",
      h("span.mark", { "aria-hidden": "true" }, marks[level] ?? "i"),
      h("span.offscreen", `${plain(level)}: `),
      h("strong", untrusted(message)),
      h("span.quiet", ` ${where({ steps })}${action === "none" ? "" : `, ${plain(action)}`}`),
    ),
    h("p", untrusted(means)),
    h("p", h("strong", "What to do: "), untrusted(remedy)),
    command ? h("pre.command", untrusted(command)) : null,
    h(
      "p.quiet",
      h("code", plain(id)),
      figures
        .slice(0, 12)
        .map(
          ({ name, step, value }) =>
            ` · ${plain(name)}${step === undefined ? "" : ` at step ${step}`} ${typeof value === "number" ? show(value, 4) : plain(value)}`,
        ),
      " · ",
      h("a", { href: context.link(`step/${steps[0]}`) }, `open step ${steps[0]}`),
    ),
    samples.length === 0
      ? null
      : h(
          "p",
          "Look at ",
          samples
            .slice(0, 8)
            .map(({ step, group, sample, problem }) => [
              h(
                "a",
                { href: context.link(`step/${step}/group/${group}/sample/${sample}`) },
                untrusted(problem),
                ` (step ${step})`,
              ),
              " ",
            ]),
        ),
    symptoms.length === 0
      ? null
      : h(
          "details",
          { "data-id": `${id} symptoms`, open: open.get(`${id} symptoms`) ?? false },
          h("summary", `What followed from it: ${symptoms.length}`),
          h(
            "ul.plain",
            symptoms.map((symptom) =>
              h(
                "li",
                untrusted(symptom.message),
                h("span.quiet", " ", h("code", plain(symptom.id)), ` after step ${symptom.since}`),
              ),
            ),
          ),
        ),
  );
}
