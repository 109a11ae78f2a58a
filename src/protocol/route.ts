// A route of the API: its method, its path, and the messages it takes and gives. Each group of messages declares its own
// (session.ts, training.ts, sampling.ts, rest.ts); routes.ts puts them together.
import type { z } from "zod";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

export interface Route<
  Request extends z.ZodType | undefined = z.ZodType | undefined,
  Response extends z.ZodType | undefined = z.ZodType | undefined,
  Result extends z.ZodType | undefined = z.ZodType | undefined,
> {
  readonly method: Method;
  /** Without the prefix; `{name}` is a parameter. `{checkpoint}` may hold a slash: weights/NAME. */
  readonly path: string;
  /** The JSON body. Absent: none, or one that is not JSON. */
  readonly request: Request;
  /** The JSON answer. Absent: empty, or one that is not JSON. */
  readonly response: Response;
  /** Where the answer is a request id: what its polls end with. */
  readonly result: Result;
}

export function route<
  Request extends z.ZodType | undefined = undefined,
  Response extends z.ZodType | undefined = undefined,
  Result extends z.ZodType | undefined = undefined,
>(
  method: Method,
  path: string,
  messages: { request?: Request; response?: Response; result?: Result } = {},
): Route<Request, Response, Result> {
  const { request, response, result } = messages;
  return { method, path, request: request as Request, response: response as Response, result: result as Result };
}

/** A route's path with its parameters filled in. Ids stand as they are (hosted ones hold colons); what would end a path is escaped. */
export function pathOf({ path }: Pick<Route, "path">, parameters: Readonly<Record<string, string>> = {}): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    parameters[name]!.replaceAll(/[?#%\s]/g, (character) => encodeURIComponent(character)),
  );
}

const folders = "(?:weights|sampler_weights|external_weights)";
const patterns: Readonly<Record<string, string>> = {
  checkpoint: `${folders}/[^/]+|(?!${folders}/)[^/]+`,
  file: ".+",
};

/** Matches a decoded path; the parameters are named groups. */
export function patternOf({ path }: Pick<Route, "path">): RegExp {
  const source = path.replaceAll(/\{(\w+)\}|[.\\+*?^$()[\]|]/g, (found, name: string | undefined) =>
    name === undefined ? `\\${found}` : `(?<${name}>${patterns[name] ?? "[^/]+"})`,
  );
  return new RegExp(`^${source}$`);
}
