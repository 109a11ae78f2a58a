// The settings of a run, and what changed when it was resumed.
// @ts-check
import { ask, runPath } from "./api.js";
import { clock, h, table, untrusted, when } from "./dom.js";

/** @import { Info } from "../info.ts" */

/** @type {import("./app.js").View} */
export async function configView(place, context) {
  /** @type {Info} */
  const { config, sessions, checkpoints } = await ask(runPath(context.run), { signal: context.signal });
  context.title(`config · ${context.run}`);
  const value = (/** @type {unknown} */ one) =>
    h("code", untrusted(typeof one === "string" ? one || '""' : (JSON.stringify(one) ?? "unset")));
  const changed = new Set(sessions.flatMap(({ changes }) => changes.map(({ key }) => key)));
  const changes = sessions.flatMap((session, index) =>
    session.changes.map((change) => ({ ...change, index, at: session.openedAt })),
  );
  place.append(
    h("h1", "Config"),
    h(
      "section.card",
      h("h2", "Changed on resume"),
      changes.length === 0
        ? h(
            "p.quiet",
            sessions.length > 1 ? "Nothing: every session had the same settings." : "The run has one session.",
          )
        : table(
            "Changes",
            ["key", "was", "became", "session"],
            changes.map(({ key, was, is, index, at }) => [
              h("code", untrusted(key)),
              value(was),
              value(is),
              `${index + 1}, ${when(at)}`,
            ]),
          ),
    ),
    h(
      "section.card",
      h("h2", "Sessions"),
      h(
        "ul.plain",
        sessions.map(({ openedAt, lastAt, outcome, pid }, index) =>
          h(
            "li",
            `${index + 1}: ${when(openedAt)}, ${clock((lastAt - openedAt) / 1000)}, process ${pid}, ${outcome ?? "open"}`,
          ),
        ),
      ),
    ),
    h(
      "section.card",
      h("h2", "Checkpoints"),
      checkpoints.length === 0
        ? h("p.quiet", "None yet.")
        : h(
            "ul.plain",
            checkpoints.map(({ name, step, final }) =>
              h("li", untrusted(name), h("span.quiet", ` after ${step} steps${final ? ", final" : ""}`)),
            ),
          ),
    ),
    h(
      "section.card",
      h("h2", "Settings"),
      h(
        "table.figures",
        h(
          "tbody",
          Object.entries(config).map(([key, one]) =>
            h(
              "tr",
              { class: changed.has(key) ? "changed" : "" },
              h("th", { scope: "row" }, untrusted(key)),
              h("td", value(one)),
            ),
          ),
        ),
      ),
    ),
  );
}
