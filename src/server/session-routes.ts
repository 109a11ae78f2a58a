// Start-up and liveness: client configuration, sessions, heartbeats, telemetry, health.
import { defaultClientConfig, defaultDynamicConfig, sessionRoutes } from "../protocol/index.ts";
import { badRequest, ServerError } from "./errors.ts";
import { serve } from "./route.ts";

/** Flags of the client configuration; all off by default. */
export const clientFlags = ["retrieve_futures", "join_sampling_session", "cancel"] as const;
export type ClientFlag = (typeof clientFlags)[number];

export const servedSessionRoutes = serve(
  sessionRoutes,
  {
    clientConfig: (app) => ({
      ...defaultClientConfig,
      seedLimit: Number.MAX_SAFE_INTEGER,
      sampleUseRetrieveFutures: app.settings.clientFlags.includes("retrieve_futures"),
      sampleJoinSamplingSession: app.settings.clientFlags.includes("join_sampling_session"),
    }),
    dynamicConfig: (app) => ({
      ...defaultDynamicConfig,
      sampleCancelEnabled: app.settings.clientFlags.includes("cancel"),
    }),
    authToken() {
      throw badRequest(
        "server/no-token-exchange",
        "This server does not exchange credentials. Use the API key itself, as /client/config says.",
      );
    },
    createSession(app, { tags, userMetadata = {}, sdkVersion, projectId, displayName }) {
      const session = app.registry.createSession({ tags, userMetadata, sdkVersion, projectId, displayName });
      return { type: "create_session", sessionId: session.id };
    },
    sessionHeartbeat(app, { sessionId }) {
      if (app.registry.session(sessionId).finished)
        throw new ServerError(410, "server/session-finished", `Session ${sessionId} was finished by its client.`);
      app.sessions.beat(sessionId);
      return {};
    },
    async finishSession(app, { reason, detail }, call) {
      const session = app.registry.session(call.parameter("session"));
      app.registry.finishSession(session, { reason: reason.type, detail });
      await app.endSession(session.id);
    },
    telemetry: () => ({ status: "accepted" as const }),
    health: () => ({ status: "ok" }),
  },
  { open: ["health"] },
);
