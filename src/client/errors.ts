// What the client raises. Every class is a TinkerError with a stable code; docs/errors.md lists the codes.
import { WhetstoneError } from "../core/errors.ts";
import type { FailureCategory } from "../protocol/index.ts";

/** Anything the Tinker client raises on purpose. */
export class TinkerError extends WhetstoneError {}

/** The caller passed something that cannot be sent. Nothing was sent. */
export class InvalidInputError extends TinkerError {
  constructor(message: string, options?: ErrorOptions) {
    super("client/invalid-input", message, options);
  }
}

/** There is no usable credential. */
export class CredentialError extends TinkerError {}

/** No answer came: refused, reset, unreachable, or answered by something in between. */
export class APIConnectionError extends TinkerError {
  constructor(message: string, options?: ErrorOptions, code = "client/connection") {
    super(code, message, options);
  }
}

/** No complete answer came in time. */
export class APITimeoutError extends APIConnectionError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options, "client/timeout");
  }
}

/** An answer of status 200 that is not what the protocol says. */
export class APIResponseError extends TinkerError {
  constructor(message: string, options?: ErrorOptions) {
    super("client/bad-response", message, options);
  }
}

/** The server refused: any status of 400 and above. */
export class APIStatusError extends TinkerError {
  /** The HTTP status. */
  readonly status: number;
  /** The body as parsed JSON, or as text. */
  readonly body: unknown;
  /** The server's own code, where it sends one. */
  readonly serverCode: string | undefined;

  constructor(code: string, message: string, status: number, body: unknown, options?: ErrorOptions) {
    super(code, message, options);
    this.status = status;
    this.body = body;
    const serverCode = typeof body === "object" && body !== null && "code" in body ? body.code : undefined;
    this.serverCode = typeof serverCode === "string" ? serverCode : undefined;
  }
}

/** The operation was accepted and then failed. */
export class RequestFailedError extends TinkerError {
  /** The request at the server. */
  readonly requestId: string;
  /** Whose fault it was. */
  readonly category: FailureCategory;
  /** The server's own code, where it sends one. */
  readonly serverCode: string | undefined;

  constructor(message: string, requestId: string, category: FailureCategory, serverCode?: string) {
    super("client/request-failed", message);
    this.requestId = requestId;
    this.category = category;
    this.serverCode = serverCode;
  }
}

/**
 * The server accepted a training request and then lost it, so whether it was applied cannot be known. It is never sent again
 * by itself: that could apply it twice.
 */
export class RequestLostError extends TinkerError {
  /** The request that the server no longer knows. */
  readonly requestId: string;

  constructor(message: string, requestId: string, options?: ErrorOptions) {
    super("client/request-lost", message, options);
    this.requestId = requestId;
  }
}

/** The server no longer has the model: it was restarted, or the session expired. */
export class ModelLostError extends TinkerError {
  /** The model that is gone. */
  readonly modelId: string;

  constructor(message: string, modelId: string, options?: ErrorOptions) {
    super("client/model-lost", message, options);
    this.modelId = modelId;
  }
}

/** A call was not sent because one that was queued before it failed to be sent. */
export class EarlierCallFailedError extends TinkerError {
  constructor(operation: string, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(
      "client/earlier-call-failed",
      `${operation} was not sent, because a call queued before it on the same training client failed: ${reason} Handle that error; calls made after it are sent again.`,
      { cause },
    );
  }
}

/** The caller's own time limit on a future passed. The server's work goes on. */
export class WaitTimeoutError extends TinkerError {
  constructor(timeoutMs: number) {
    super(
      "client/wait-timeout",
      `The result did not come within timeoutMs=${timeoutMs}. The request goes on at the server; call result() again to keep waiting.`,
    );
  }
}

/** No sample of this client has finished for a long time. */
export class StuckError extends APIConnectionError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options, "client/stuck");
  }
}

/** The client was closed. */
export class ClientClosedError extends TinkerError {
  constructor() {
    super(
      "client/closed",
      "This client was closed. Make a new ServiceClient, and close it after the last call has been awaited.",
    );
  }
}

const statusCodes: Readonly<Record<number, [code: string, advice: string]>> = {
  400: ["client/bad-request", "Correct the request; sending it again as it is will fail again."],
  401: ["client/unauthorized", "Check the API key: apiKey in the options, or TINKER_API_KEY."],
  402: ["client/billing", "The account cannot be charged. Settle it, then run again."],
  403: ["client/forbidden", "This key has no access to it. Use the key of its owner, or ask for access."],
  404: ["client/not-found", "Check the id or path, and that baseUrl points at the server that has it."],
  408: ["client/busy", "The server is overloaded. Try again later."],
  409: [
    "client/conflict",
    "It exists already, or is in that state already. Choose another name, or list what is there.",
  ],
  410: ["client/gone", "It was there and is not any more. Make it again."],
  413: ["client/too-large", "Send less in one request: shorter sequences, or fewer per call."],
  422: ["client/unprocessable", "The server does not accept a field. The text above names it."],
  425: ["client/busy", "It is still being written. Try again later."],
  429: ["client/busy", "The server is overloaded. Try again later, or send fewer requests at once."],
};

/** The error for an HTTP status of 400 and above. `what` says what was asked, e.g. "optim_step". */
export function statusError(what: string, status: number, bodyText: string): APIStatusError {
  let body: unknown = bodyText;
  try {
    body = JSON.parse(bodyText);
  } catch {
    // Not every server, and no proxy, answers in JSON.
  }
  const [code, advice] = statusCodes[status] ?? [
    status >= 500 ? "client/server-error" : "client/http-status",
    status >= 500
      ? "The server or a proxy before it failed. Try again later; its log says why."
      : "See the server's documentation for this status.",
  ];
  return new APIStatusError(
    code,
    `${what} was refused with status ${status}: ${detailOf(body)} ${advice}`,
    status,
    body,
  );
}

/** What an error body says, as one sentence. */
export function detailOf(body: unknown): string {
  let text = "";
  if (typeof body === "string") text = body;
  else if (typeof body === "object" && body !== null && "detail" in body) {
    const { detail } = body;
    if (typeof detail === "string") text = detail;
    else if (Array.isArray(detail))
      text = detail
        .map(
          (issue: { loc?: unknown[]; msg?: string }) => `${issue.loc?.join(".") ?? "body"}: ${issue.msg ?? "invalid"}`,
        )
        .join("; ");
    else text = JSON.stringify(detail);
  } else text = JSON.stringify(body);
  text = text.trim().slice(0, 2000);
  if (text === "") return "(no text).";
  return /[.!?\]]$/.test(text) ? text : `${text}.`;
}
