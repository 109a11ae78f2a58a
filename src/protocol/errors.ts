// What a decoder throws, and nothing else: bytes or JSON that are not the message they should be.
import { WhetstoneError } from "../core/errors.ts";

/** One place in a message that is wrong, in the shape FastAPI servers use for their 422 bodies. */
export interface ProtocolIssue {
  loc: readonly (string | number)[];
  msg: string;
  type: string;
}

export type ProtocolErrorCode =
  | "protocol/malformed-json"
  | "protocol/malformed-protobuf"
  | "protocol/invalid-message"
  | "protocol/bad-path"
  | "protocol/not-expressible";

/** Bytes, JSON or a path that does not follow the Tinker protocol. */
export class ProtocolError extends WhetstoneError {
  /** Which rule of the protocol was broken. */
  declare readonly code: ProtocolErrorCode;
  /** What is wrong, field by field. */
  readonly issues: readonly ProtocolIssue[];

  constructor(code: ProtocolErrorCode, message: string, issues: readonly ProtocolIssue[] = [], options?: ErrorOptions) {
    super(code, message, options);
    this.issues = issues;
  }
}
