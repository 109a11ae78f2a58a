// Messages for people: every line goes to the journal, which writes logs.log from it, and most to the console. Secrets are blanked on
// the way. logs.log also has what no message has: the rewards of every group, answers in full, what the server answered.
import { visibleLine } from "../core/visible.ts";
import type { RunEvent } from "./events.ts";
import type { Journal } from "./journal.ts";
import type { RecordedGroup } from "./turns.ts";

export type Level = "INFO" | "WARNING" | "ERROR";

/** Where a run's messages go. `detail` is for the file alone. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
  detail(message: string): void;
}

/** Environment variables whose values must never be written anywhere. */
const secretName = /(_KEY|_TOKEN|_SECRET|PASSWORD)$/;

/** Replaces the values of secret environment variables, and credentials inside URLs, by a mark. */
export function redact(text: string, environment: Readonly<Record<string, string | undefined>> = process.env): string {
  let clean = text.replaceAll(/(\w+:\/\/)[^\s/@]+@/g, "$1***@");
  for (const [name, value] of Object.entries(environment)) {
    if (value && value.length >= 8 && secretName.test(name)) clean = clean.replaceAll(value, "***");
  }
  return clean;
}

/** A value was written down without its password. */
export const isRedacted = (value: unknown) => typeof value === "string" && value.includes("://***@");

export class RunLogger implements Logger {
  readonly #journal: Pick<Journal, "note">;
  readonly #print: (line: string, level: Level) => void;
  /** When each warning was last written, so that an outage is one line and not a hundred. */
  readonly #warnedAt = new Map<string, number>();

  /** `print` shows a line to a person; the journal gets every line. */
  constructor(journal: Pick<Journal, "note">, print: (line: string, level: Level) => void) {
    this.#journal = journal;
    this.#print = print;
  }

  info(message: string): void {
    this.#write("INFO", message, true);
  }

  /** The same warning again within a minute is left out. */
  warn(message: string): void {
    const now = performance.now();
    const last = this.#warnedAt.get(message);
    if (last !== undefined && now - last < 60_000) return;
    if (this.#warnedAt.size > 1000) this.#warnedAt.clear();
    this.#warnedAt.set(message, now);
    this.#write("WARNING", message, true);
  }

  error(message: string): void {
    this.#write("ERROR", message, true);
  }

  detail(message: string): void {
    this.#write("INFO", message, false);
  }

  /** For the file alone: an error that is printed elsewhere. */
  fatal(message: string): void {
    this.#write("ERROR", message, false);
  }

  #write(level: Level, message: string, print: boolean): void {
    const clean = redact(message);
    this.#journal.note({ type: "log", level, message: clean });
    if (print) this.#print(clean, level);
  }
}

export const logLine = (at: number, level: Level, message: string) =>
  `${new Date(at).toISOString()} [${level}] ${message}\n`;

/** What logs.log says of an event. `groups` are those of an update, in its order. */
export function logLines(
  event: RunEvent,
  groupsToLog: number,
  groups: readonly (RecordedGroup | undefined)[] = [],
): string[] {
  const line = (level: Level, message: string) => logLine(event.at, level, message);
  switch (event.type) {
    case "log":
      return [line(event.level, event.message)];
    case "update-submitted":
      return event.groups.flatMap(({ batch, group: place, problem, outcome, skipped }, index) => {
        const group = groups[index];
        const rewards = group?.graded.map((event) => event?.grade.reward ?? "?").join(" ") ?? "?";
        const from = batch === event.step ? "" : `, carried over from step ${batch}`;
        const name = `step ${event.step} group ${place}${from}`;
        const outcomeText = `${name} ${visibleLine(problem, 200)}: ${outcome}`;
        const lines = [
          skipped
            ? line("WARNING", `${outcomeText}, every reward is the same: nothing to learn, skipped; rewards ${rewards}`)
            : line("INFO", `${outcomeText}; rewards ${rewards}`),
        ];
        const first = index < groupsToLog ? group?.sampled.samples[0] : undefined;
        if (first) lines.push(line("INFO", `${name} sample 0 (${group!.graded[0]?.grade.status}):\n${first.text}`));
        return lines;
      });
    case "update-done":
      return [
        line(
          "INFO",
          `step ${event.step} server: ${event.lossSum === undefined ? "" : `loss:sum ${event.lossSum} `}${JSON.stringify(event.server)} in ${seconds(event)} s`,
        ),
      ];
    case "policy-published":
      return [
        line(
          "INFO",
          `policy ${event.version} published${event.path === undefined ? "" : ` as ${event.path}`} in ${seconds(event)} s`,
        ),
      ];
    case "saved":
      return [line("INFO", `checkpoint ${event.record.name} saved in ${seconds(event)} s`)];
    case "rewound":
      return [line("WARNING", `back to step ${event.to}: ${event.reason}`)];
    case "stopped":
      return [line("INFO", `stopped: ${event.outcome}${event.error ? `: ${event.error}` : ""}`)];
    default:
      return [];
  }
}

const seconds = ({ start, end }: { start: number; end: number }) => ((end - start) / 1000).toFixed(2);
