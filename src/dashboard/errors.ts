import { WhetstoneError } from "../core/errors.ts";

/** The dashboard cannot be served, or was asked for what is not there. */
export class DashboardError extends WhetstoneError {
  /** Of the answer over HTTP. */
  readonly status: number;

  constructor(status: number, code: string, message: string, options?: ErrorOptions) {
    super(code, message, options);
    this.status = status;
  }
}

export const notFound = (what: string): DashboardError =>
  new DashboardError(
    404,
    "dashboard/not-found",
    `${what} is not in the journal, or no longer. Go back and choose again.`,
  );
