// Where in a user's module something went wrong.
import { fileURLToPath } from "node:url";
import { messageOf } from "../../core/errors.ts";

/** Frames of Node's, of packages and of this one say nothing to whoever wrote the module. */
const foreign = /node:|[/\\]node_modules[/\\]/;
const own = fileURLToPath(new URL("../../", import.meta.url));

/** FILE:LINE:COLUMN of an error: of its own, where it names one, or of the first frame in a module of the user's. */
export function placeIn(error: unknown, folder?: string): string | undefined {
  if (!(error instanceof Error) || error.stack === undefined) return undefined;
  const [first = "", ...lines] = error.stack.split("\n");
  // A module that cannot be parsed is named before the error is.
  const parsed = /^(?:file:\/\/)?(\/.+|[A-Za-z]:\\.+):(\d+)$/.exec(first);
  if (parsed && (folder === undefined || parsed[1]!.startsWith(folder))) return `${parsed[1]}:${parsed[2]}`;
  const line = lines.find((one) => /^\s+at /.test(one) && !foreign.test(one) && !one.includes(own));
  return line
    ?.replace(/^\s+at (?:async )?/, "")
    .replace("file://", "")
    .replace(/^.*\((.*)\)$/, "$1");
}

/** What an environment threw, with the place in its file. */
export function withPlace(error: unknown): string {
  const place = placeIn(error);
  return place === undefined ? messageOf(error) : `${messageOf(error)} (${place})`;
}
