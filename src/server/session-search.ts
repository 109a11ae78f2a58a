// Finds sessions by what is known of them, newest first.
import type { SearchSessionsRequest, SearchSessionsResponse } from "../protocol/index.ts";
import type { App } from "./app.ts";
import { badRequest } from "./errors.ts";
import type { SessionRecord } from "./registry.ts";

const maxLimit = 200;

export function searchSessions(app: App, request: SearchSessionsRequest): SearchSessionsResponse {
  const { limit, cursor } = request;
  if (limit < 1 || limit > maxLimit)
    throw badRequest("server/query", `limit=${limit} is out of range. Send 1 to ${maxLimit}.`);
  const all = app.registry.sessions;
  // Sessions stand in the order of their making, so the one that was last is where to go on.
  const start = cursor ? all.findIndex(({ id }) => id === cursor.lastSessionId) + 1 : 0;
  const found = all.slice(start).filter((session) => fits(session, request));
  const sessions = found.slice(0, limit);
  const last = sessions.at(-1);
  return {
    sessions: sessions.map((session) => describe(app, session)),
    ...(last &&
      found.length > limit && {
        nextCursor: { lastCreatedAt: new Date(last.createdAt), lastSessionId: last.id },
      }),
  };
}

function fits(session: SessionRecord, wanted: SearchSessionsRequest): boolean {
  const { sessionId, projectIds, displayName, userMetadata, statuses, owner } = wanted;
  if (sessionId !== undefined && session.id !== sessionId) return false;
  if (projectIds && !projectIds.includes(session.projectId ?? "")) return false;
  if (displayName !== undefined && !(session.displayName ?? "").includes(displayName)) return false;
  // There is one user, who is called so in listings.
  if (owner?.type === "user" && !(owner["owner_urns"] as unknown[] | undefined)?.includes("local")) return false;
  for (const [key, value] of Object.entries(userMetadata))
    if (JSON.stringify(session.userMetadata[key]) !== JSON.stringify(value)) return false;
  return !statuses || statuses.some((status) => hasStatus(session, status));
}

function hasStatus(
  { finished }: SessionRecord,
  { type, reasons }: NonNullable<SearchSessionsRequest["statuses"]>[number],
): boolean {
  if (type === "active") return !finished;
  if (type !== "client_finished" || !finished) return false;
  return !reasons || reasons.some((reason) => (typeof reason === "string" ? reason : reason.type) === finished.reason);
}

function describe(app: App, session: SessionRecord): SearchSessionsResponse["sessions"][number] {
  const runs = new Set(app.registry.models.filter(({ sessionId }) => sessionId === session.id).map(({ id }) => id));
  const checkpoints = app.checkpoints.list().filter(({ runId }) => runs.has(runId));
  return {
    sessionId: session.id,
    createdAt: new Date(session.createdAt),
    owner: "local",
    projectId: session.projectId ?? "",
    status: session.finished
      ? { type: "client_finished", reason: { type: session.finished.reason }, detail: session.finished.detail }
      : { type: "active" },
    checkpointsCount: checkpoints.length,
    displayName: session.displayName,
    userMetadata: { ...session.userMetadata },
    checkpointStorageBytes: checkpoints.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  };
}
