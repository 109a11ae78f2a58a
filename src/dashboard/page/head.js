// The head of every page: where one is, what state the run is in, and the ways to its other pages.
// @ts-check
import { controls } from "./controls.js";
import { clock, count, h, inAddress, percent, plain, replace } from "./dom.js";
import { worstError } from "./findings.js";
import { showKeys } from "./keys.js";
import { themeButton } from "./theme.js";

/** @type {import("./app.js").Context | null} */
let context = null;
/** @type {{ state: HTMLElement, bar: HTMLElement, controls: ReturnType<typeof controls> | null } | null} */
let parts = null;

/** Draws the head of a view, or (null) brings the one that is there up to date. @param {HTMLElement} head @param {import("./app.js").Context | null} next */
export function drawHead(head, next) {
  if (next) build(head, next);
  update();
}

/** @param {HTMLElement} head @param {import("./app.js").Context} next */
function build(head, next) {
  context = next;
  const { run, link } = next;
  const state = h("span.state");
  const bar = h("div.progress", { hidden: true }, h("div.progress-bar"));
  const own = run === "" ? null : controls(next);
  replace(
    head,
    h(
      "div.bar",
      h("a.brand", { href: "#/runs" }, "Whetstone"),
      run === "" ? h("span.where", "Runs") : h("a.where", { href: link(""), title: plain(run) }, plain(run)),
      run === "" ? null : state,
      h("span.room"),
      own?.element ?? null,
      themeButton(),
      h("button.icon", { type: "button", title: "Keys (?)", "aria-label": "Show the keys", onclick: showKeys }, "?"),
    ),
    run === ""
      ? null
      : h(
          "nav",
          { "aria-label": "Pages of this run" },
          next.tabs.map(({ label, path }) =>
            h("a", { href: link(path), "aria-current": label === next.tab ? "page" : undefined }, label),
          ),
          h("a", { href: `#/compare?run=${inAddress(run)}` }, "Compare"),
          h("a", { href: "#/runs" }, "All runs"),
        ),
    bar,
    next.crumbs.length === 0
      ? null
      : h(
          "nav.crumbs",
          { "aria-label": "Where this is" },
          h(
            "ol",
            next.crumbs.map(({ label, path }, index) =>
              h(
                "li",
                index === next.crumbs.length - 1
                  ? h("span", { "aria-current": "page" }, plain(label))
                  : h("a", { href: link(path) }, plain(label)),
              ),
            ),
          ),
        ),
  );
  parts = { state, bar, controls: own };
  const { keys } = next;
  if (run !== "")
    Object.assign(keys, {
      o: () => next.go(""),
      p: () => next.go("problems"),
      e: () => next.go("evals"),
      c: () => next.go("config"),
    });
  keys.r = () => next.go("#/runs");
  const up = next.crumbs.length > 1 ? next.crumbs[next.crumbs.length - 2].path : "";
  keys.Escape ??= () => (run === "" || next.words.length === 0 ? next.go("#/runs") : next.go(up));
}

function update() {
  if (!parts || !context?.store) return;
  const { pulse, info, connection } = context.store;
  if (!pulse) return;
  const { state, step, walked, sinceStep } = pulse;
  const most = Number(info?.config?.max_steps ?? -1);
  /** @type {string[]} */
  const texts = walked < 1 ? [] : [state];
  const worst = worstError(info);
  if (worst) texts.push(plain(worst.id));
  if (step >= 0) texts.push(most > step ? `step ${step + 1} of ${most}` : `step ${count(step + 1)}`);
  if (state === "live" && sinceStep.groups + sinceStep.graded > 0)
    texts.push(`${sinceStep.groups} groups sampled, ${sinceStep.graded} answers judged since`);
  if (info?.seconds) texts.push(clock(info.seconds));
  if (walked < 1) texts.push(`reading the journal: ${percent(walked)}`);
  if (connection === "lost") texts.push("connection lost, trying again");
  if (connection === "ended") texts.push("the dashboard has ended");
  replace(
    parts.state,
    h("span", {
      class: `dot ${connection === "lost" ? "lost" : walked < 1 ? "" : worst ? "wrong" : state}`,
      "aria-hidden": "true",
    }),
    texts.join(" · "),
  );
  const share = walked < 1 ? walked : most > 0 ? Math.min(1, (step + 1) / most) : 0;
  parts.bar.hidden = share <= 0 || share >= 1;
  /** @type {HTMLElement} */ (parts.bar.firstElementChild).style.width = `${100 * share}%`;
  parts.controls?.update();
}
