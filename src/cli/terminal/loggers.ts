// Where the messages of a command go that has no run to write them to.
import { type Logger, redact } from "../../runs/log.ts";

const nothing = () => {};

export const silentLogger: Logger = { info: nothing, warn: nothing, error: nothing, detail: nothing };

/** A line for people, without secrets. */
export const say = (line: string) => console.error(redact(line));

export const stderrLogger: Logger = {
  info: say,
  warn: (line) => say(`warning: ${line}`),
  error: (line) => say(`error: ${line}`),
  detail: nothing,
};
