// Start-up and liveness: client configuration, sessions, heartbeats, telemetry, capabilities, health.
import { z } from "zod";
import {
  clientConfigRequest,
  createSessionRequest,
  encode,
  serverCapabilities,
  sessionHeartbeatRequest,
} from "../protocol/index.ts";
import { ServerError } from "./errors.ts";
import { jsonAnswer } from "./http.ts";
import { readMessage } from "./json.ts";
import type { Route } from "./route.ts";

/** Telemetry is accepted and dropped; only its outline is checked, so that no client version is sent into a retry loop. */
const telemetryOutline = z.looseObject({ events: z.array(z.looseObject({})), session_id: z.string().optional() });

export const sessionRoutes: readonly Route[] = [
  {
    name: "client_config",
    method: "POST",
    path: /^\/client\/config$/,
    handle(_app, call) {
      call.read(clientConfigRequest);
      // Everything else is at the protocol's defaults.
      return jsonAnswer({ pjwt_auth_enabled: false });
    },
  },
  {
    name: "dynamic_config",
    method: "POST",
    path: /^\/client\/dynamic_config$/,
    handle(_app, call) {
      call.read(clientConfigRequest);
      return jsonAnswer({ refresh_interval_sec: 300 });
    },
  },
  {
    name: "auth_token",
    method: "POST",
    path: /^\/auth\/token$/,
    handle() {
      throw new ServerError(
        400,
        "server/no-token-exchange",
        "This server does not exchange credentials. Use the API key itself, as /client/config says.",
      );
    },
  },
  {
    name: "create_session",
    method: "POST",
    path: /^\/create_session$/,
    handle(app, call) {
      const { tags, userMetadata, sdkVersion, projectId } = call.read(createSessionRequest);
      const session = app.registry.createSession({ tags, userMetadata: userMetadata ?? {}, sdkVersion, projectId });
      return jsonAnswer({ type: "create_session", session_id: session.id });
    },
  },
  {
    name: "session_heartbeat",
    method: "POST",
    path: /^\/session_heartbeat$/,
    handle(app, call) {
      const { sessionId } = call.read(sessionHeartbeatRequest);
      app.registry.session(sessionId);
      app.sessions.beat(sessionId);
      return jsonAnswer({ type: "session_heartbeat" });
    },
  },
  {
    name: "telemetry",
    method: "POST",
    path: /^\/telemetry$/,
    handle(_app, call) {
      readMessage(telemetryOutline, call.json());
      return jsonAnswer({ status: "accepted" });
    },
  },
  {
    name: "get_server_capabilities",
    method: "GET",
    path: /^\/get_server_capabilities$/,
    handle: (app) =>
      jsonAnswer(
        encode(serverCapabilities, {
          supportedModels: app.engine.models.map(({ name, maxContextLength }) => ({
            modelName: name,
            maxContextLength,
          })),
        }),
      ),
  },
  { name: "healthz", method: "GET", path: /^\/healthz$/, open: true, handle: () => jsonAnswer({ status: "ok" }) },
];
