// What the server refuses or cannot do. Every refusal carries an HTTP status and a stable code; the body that clients see is
// `{"detail": "<message> [<code>]", "code": "<code>"}`, or `{"error", "category", "code"}` when an accepted operation fails.
import { messageOf, WhetstoneError } from "../core/errors.ts";
import { EngineError } from "../engine/errors.ts";
import { ProtocolError } from "../protocol/index.ts";

/** A failed operation, in the words of the API: text for people, whose fault it is and a code for programs. */
export interface Failure {
  message: string;
  category: "user" | "server";
  code: string;
}

/** A training request's place. */
export interface NumberedRequest {
  modelId: string;
  sequence: number;
}

export class ServerError extends WhetstoneError {
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  /** Set where a body was read elsewhere: the sequence number that the refused request had. */
  refused: NumberedRequest | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    options: ErrorOptions & { retryAfterSeconds?: number } = {},
  ) {
    super(code, message, options);
    this.status = status;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get category(): Failure["category"] {
    return this.status < 500 ? "user" : "server";
  }
}

/** What the client can correct. */
export const badRequest = (code: string, message: string) => new ServerError(400, code, message);

export const shuttingDown = () =>
  new ServerError(503, "server/shutting-down", "The server is shutting down. Try again when it is back.", {
    retryAfterSeconds: 2,
  });

/** A number came again, with something else. */
export const numberReused = (message: string) =>
  badRequest("server/sequence-reused", `${message} Give each its own number.`);

/** Gives a decoder's error its place in this server's answers; every other error is given back as it is. */
export function fromProtocol(error: unknown): unknown {
  if (!(error instanceof ProtocolError)) return error;
  if (error.code === "protocol/invalid-message" || error.code === "protocol/not-expressible")
    return new ServerError(422, "server/invalid-message", error.message);
  if (error.code === "protocol/bad-path") return badRequest("server/bad-path", error.message);
  return badRequest("server/malformed-body", error.message);
}

const diskProblems = new Set(["ENOSPC", "EDQUOT", "EROFS", "EIO", "EACCES", "EPERM", "EMFILE", "ENFILE"]);

/** Names what the disk refused; every other error is given back as it is. */
export function explainDisk(error: unknown, what: string): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code === undefined || !diskProblems.has(code)) return error;
  return new ServerError(
    507,
    "server/disk",
    `${what} cannot be written (${messageOf(error)}). Nothing was changed. Free space or fix the folder's rights, then try again.`,
    { cause: error },
  );
}

/** The error as an operation's failure. */
export function failureOf(error: unknown): Failure {
  if (error instanceof ServerError) return { message: error.message, category: error.category, code: error.code };
  if (error instanceof EngineError) return { message: error.message, category: error.fault, code: error.code };
  if (error instanceof WhetstoneError) return { message: error.message, category: "server", code: error.code };
  return {
    message: `The server failed in a way it does not know: ${messageOf(error)}. Its log has the trace.`,
    category: "server",
    code: "server/internal",
  };
}
