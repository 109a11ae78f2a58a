// Tells a server that has lost something from a server that cannot be reached.
import {
  APIStatusError,
  EarlierCallFailedError,
  ModelLostError,
  RequestFailedError,
  RequestLostError,
  type ServiceClient,
} from "../client/index.ts";

/**
 * True where the live model, or the fate of a request to it, is lost (the server was restarted, say): the only safe way on is the last
 * checkpoint.
 */
export const isModelLost = (error: unknown): boolean =>
  causesOf(error).some((cause) => cause instanceof ModelLostError || cause instanceof RequestLostError);

/**
 * True where the server no longer has the path it was asked for. A 404 alone says little: a wrong address or a proxy gives one too.
 * So the server is asked whether it is there and speaks the protocol; if not, the error is about the connection.
 */
export async function isGone(error: unknown, service: ServiceClient, signal?: AbortSignal): Promise<boolean> {
  const status = statusOf(error);
  if (status === 410) return true;
  if (status !== 404) return false;
  try {
    await service.getServerCapabilities(signal ? { signal } : {});
    return true;
  } catch {
    return false;
  }
}

function statusOf(error: unknown): number | undefined {
  for (const cause of causesOf(error)) {
    if (cause instanceof APIStatusError) return cause.status;
    // A path that is found missing only when the accepted request is worked on.
    if (cause instanceof RequestFailedError && /not-found|not_found/.test(cause.serverCode ?? "")) return 404;
  }
  return undefined;
}

/** What went wrong first, where calls that were queued behind it failed because of it. */
export function firstFailure(error: unknown): unknown {
  return error instanceof EarlierCallFailedError ? firstFailure(error.cause) : error;
}

/** True where the engine met infinite or missing numbers: training has diverged. */
export const isDiverged = (error: unknown): boolean =>
  causesOf(error).some(
    (cause) => cause instanceof RequestFailedError && /^engine\/non-finite-/.test(cause.serverCode ?? ""),
  );

/** An error, its cause, the cause of that, and so on. */
function causesOf(error: unknown): unknown[] {
  const isLast = !(error instanceof Error) || error.cause === undefined;
  return isLast ? [error] : [error, ...causesOf(error.cause)];
}
