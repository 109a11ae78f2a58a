// The Tinker-compatible server, as a library: `./whet serve` starts it, and tests start it inside their own process.
export { type AppSettings, defaultSettings } from "./app.ts";
export { ServerError } from "./errors.ts";
export { type FaultKind, type FaultRule, type FaultRuleInput, FaultScript, faultKinds } from "./faults.ts";
export { routeTable, type ServerOptions, startServer, TinkerServer } from "./server.ts";
export type { ModelText } from "./stop.ts";
