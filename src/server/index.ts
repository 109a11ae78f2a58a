// The Tinker-compatible server, as a library: `./whet serve` starts it, and tests start it inside their own process.
export { type AppSettings, defaultSettings } from "./app.ts";
export { ServerError } from "./errors.ts";
export { Answer, errorAnswer } from "./http.ts";
export { type Exchange, type Intercept, routeTable, type ServerOptions, startServer, TinkerServer } from "./server.ts";
export { type ClientFlag, clientFlags } from "./session-routes.ts";
export { type ModelText, modelText } from "./stop.ts";
