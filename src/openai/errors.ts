// What is refused over the OpenAI API, in its own form: `{"error": {"message", "type", "param", "code"}}`.
import { messageOf, WhetstoneError } from "../core/errors.ts";

export class EndpointError extends WhetstoneError {
  readonly status: number;

  constructor(status: number, code: string, message: string, options?: ErrorOptions) {
    super(code, message, options);
    this.status = status;
  }
}

export interface ErrorBody {
  error: { message: string; type: string; param: null; code: string };
}

/** The answer to what went wrong. Clients send again what failed with 408, 409, 429 or from 500 on, and nothing else. */
export function errorBody(error: unknown): { status: number; body: ErrorBody } {
  const known = error instanceof EndpointError ? error : undefined;
  // A conversation that the chat format cannot write is the client's.
  const isTheirs = error instanceof WhetstoneError && error.code.startsWith("renderer/");
  const status = known?.status ?? (isTheirs ? 400 : 500);
  const code = error instanceof WhetstoneError ? error.code.replace("endpoint/", "").replaceAll("-", "_") : "failed";
  const type = status < 500 ? "invalid_request_error" : "server_error";
  return { status, body: { error: { message: messageOf(error), type, param: null, code } } };
}
