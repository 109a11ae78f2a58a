// The processes that worked on a run: why it did not come to its end, what changed on resume, what was said.
// @ts-check
import { clock, h, plain, replace, untrusted, when } from "./dom.js";

/** Why a run that is over did not come to its end. @param {HTMLElement} place @param {import("./api.js").RunStore} store */
export function drawReason(place, { info, pulse }) {
  const error = info?.sessions.at(-1)?.error;
  const text =
    pulse?.problem ??
    (pulse?.state === "failed"
      ? (error ?? "It did not say why.")
      : pulse?.state === "crashed" && pulse.walked === 1
        ? "Its process was killed, or the machine stopped. The same command goes on where it ended."
        : "");
  if (place.dataset.drawn === text) return;
  place.dataset.drawn = text;
  replace(
    place,
    text === ""
      ? null
      : h(
          "section.card.failed",
          { "aria-labelledby": "reason" },
          h("h2", { id: "reason", class: "bad" }, pulse?.state === "failed" ? "The run failed" : "The run broke off"),
          h("p.reason", untrusted(text)),
        ),
  );
}

/** @param {HTMLElement} place @param {import("./api.js").RunStore} store */
export function drawMessages(place, store) {
  const { info, pulse } = store;
  if (!info || !pulse) return;
  const changed = info.sessions.flatMap((session, index) =>
    session.changes.map((change) =>
      h(
        "li",
        `session ${index + 1}: `,
        h("code", plain(change.key)),
        " was ",
        h("code", untrusted(JSON.stringify(change.was) ?? "unset")),
        " and became ",
        h("code", untrusted(JSON.stringify(change.is) ?? "unset")),
      ),
    ),
  );
  replace(
    place,
    h("h2", "Sessions and messages"),
    info.from === null ? null : h("p", "began with ", untrusted(info.from)),
    h(
      "ul.plain",
      info.sessions.map(({ openedAt, lastAt, outcome, error, started }, index) =>
        h(
          "li",
          `session ${index + 1}: ${when(openedAt)}, ${clock((lastAt - openedAt) / 1000)}, `,
          outcome ??
            (index === info.sessions.length - 1 && pulse.state === "live"
              ? "live"
              : started
                ? "crashed"
                : "did not begin"),
          error ? [": ", h("span.bad", untrusted(error))] : null,
        ),
      ),
    ),
    changed.length > 0 ? [h("h3", "Changed on resume"), h("ul.plain", changed)] : null,
    info.notes.length > 0
      ? [
          h("h3", "Warnings and events"),
          h(
            "ol.plain.notes",
            { tabindex: "0" },
            [...info.notes]
              .reverse()
              .map(({ at, level, text }) =>
                h(
                  "li",
                  { class: level.toLowerCase() },
                  h("time", new Date(at).toLocaleTimeString()),
                  " ",
                  h("span", untrusted(text.slice(0, 2000))),
                ),
              ),
          ),
        ]
      : null,
  );
}
