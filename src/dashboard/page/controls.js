// The controls of a live run: each is written into the run's folder, taken up by its loop and journalled there.
// @ts-check
import { ask, runPath } from "./api.js";
import { h, replace, say } from "./dom.js";

/** @param {import("./app.js").Context} context */
export function controls(context) {
  const element = h("span.controls");
  const answer = h("span.quiet", { role: "status" });
  let drawn = "";

  /** @param {object} control @param {string} label */
  const send = async (control, label) => {
    answer.textContent = `${label}: asked`;
    try {
      await ask(`${runPath(context.run)}/control`, { method: "POST", body: JSON.stringify(control) });
      say(`${label}: asked`);
    } catch (error) {
      answer.textContent = error instanceof Error ? error.message : String(error);
    }
  };
  /** @param {string} label @param {string} name @param {string} hint @param {string} [kind] */
  const button = (label, name, hint, kind = "") =>
    h("button", { type: "button", class: kind, title: hint, onclick: () => void send({ kind: name }, label) }, label);

  const rate = () => {
    const current = context.store?.last("optim/lr");
    const field = /** @type {HTMLInputElement} */ (
      h("input", {
        type: "text",
        inputMode: "decimal",
        value: String(current ?? ""),
        "aria-label": "Learning rate",
        size: 8,
      })
    );
    return h(
      "form.rate",
      {
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          const value = Number(field.value);
          if (!(value > 0 && Number.isFinite(value))) answer.textContent = `${field.value} is no learning rate`;
          else void send({ kind: "learning-rate", value }, `learning rate ${value}`);
        },
      },
      h("label", "rate ", field),
      h("button", { type: "submit" }, "set"),
    );
  };

  return {
    element,
    update() {
      const { pulse, info } = context.store ?? {};
      const live = pulse?.state === "live" && info?.controls !== undefined;
      const state = live ? (info.controls.paused ? "paused" : "live") : "none";
      if (state === drawn) return;
      drawn = state;
      if (state === "none") {
        replace(element);
        return;
      }
      const ask = h("details.menu", h("summary", state === "paused" ? "Paused" : "Controls"));
      ask.append(
        h(
          "div.card.menu-body",
          state === "paused"
            ? button("Go on", "go-on", "Training goes on")
            : button("Pause", "pause", "Nothing new is begun after the update under way"),
          button("Save now", "save", "A checkpoint after the update under way"),
          button("Evaluate now", "evaluate", "Measures the newest policy beside training"),
          button("Stop", "stop", "Finishes the update under way, saves, ends; the same command goes on", "danger"),
          rate(),
          answer,
        ),
      );
      replace(element, ask);
    },
  };
}
