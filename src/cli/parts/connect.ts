// The Tinker endpoint that a command works with: which one the settings ask for, its models, and a connection to it.
import { join } from "node:path";
import { APIStatusError, type ClientOptions, CredentialError, ServiceClient } from "../../client/index.ts";
import { defaultBaseUrl, isHosted } from "../../client/options.ts";
import { ConfigError, WhetstoneError } from "../../core/errors.ts";
import type { OutageNews } from "../../core/outage.ts";
import { whet } from "../../core/program.ts";
import { shellCommand } from "../../core/shell.ts";
import { type EnginePreset, presetConfig, type TrainConfig } from "../../rl/config.ts";
import { type OfferedModel, offeredModels, offerOf } from "../../rl/offered.ts";
import type { EngineName } from "../../rl/prices.ts";
import { redact } from "../../runs/log.ts";
import type { EngineOptions, RunningEngine } from "../engines/engine.ts";
import { isLocal, localEngines } from "../engines/index.ts";
import { bundledName, isMissing } from "../engines/model.ts";
import { nearestModel } from "./nearest-model.ts";

/** The settings that decide on engine and preset. */
type Asked = Partial<Pick<TrainConfig, "base_url" | "engine" | "model_name">>;

/** The engine that the settings ask for: the one that is named, else the server at an address, the service that the key is for, or the embedded one. */
export function engineKind(
  { base_url: baseUrl = "", engine = "" }: Asked,
  environment: NodeJS.ProcessEnv = process.env,
): EngineName {
  const address = baseUrl || environment["TINKER_BASE_URL"] || "";
  if (engine === "server" && address === "")
    throw new ConfigError(
      "config/no-server",
      "engine=server has no address. Name the server with base_url=, or set TINKER_BASE_URL.",
    );
  if (engine !== "" && engine !== "server" && baseUrl !== "")
    throw new ConfigError(
      "config/conflict",
      `engine=${engine} and base_url=${redact(baseUrl)} name two engines. Leave one of them out.`,
    );
  if (engine !== "") return engine;
  if (address !== "") return "server";
  return environment["TINKER_API_KEY"] ? "hosted" : "embedded";
}

/** The engine whose prices count: a server at an address of the hosted service is the hosted service. */
export function chargedAs(
  settings: Asked,
  environment: NodeJS.ProcessEnv = process.env,
  kind: EngineName = engineKind(settings, environment),
): EngineName {
  const address = settings.base_url || environment["TINKER_BASE_URL"] || "";
  return kind === "server" && isHosted(address) ? "hosted" : kind;
}

/** The preset of an engine that need not be asked: on this machine, nano with the bundled model, and small with another. */
export function presetOfEngine(kind: Exclude<EngineName, "server">, modelName = bundledName): EnginePreset {
  if (kind === "hosted") return "deepcoder";
  return modelName === bundledName ? "nano" : "small";
}

/** The preset that fits the engine and the model; of servers, nano for those that have the bundled model, else deepcoder. */
export async function presetFor(asked: Asked = {}): Promise<EnginePreset> {
  const { base_url: baseUrl = "", model_name: model } = asked;
  const kind = engineKind(asked);
  if (kind !== "server") return presetOfEngine(kind, model);
  const offered = await modelsAt(baseUrl === "" ? {} : { baseUrl });
  const has = (preset: EnginePreset) => offered.some(({ name }) => name === presetConfig(preset).model_name);
  return has("nano") && !has("deepcoder") ? "nano" : "deepcoder";
}

/** Why nobody was asked for a model. */
export const noKeyNotice = "no TINKER_API_KEY found, so the embedded engine is used";

export interface EngineConnection {
  kind: EngineName;
  /** Names the server in what is remembered of how it behaves. */
  identity: string;
  service: ServiceClient;
  models: OfferedModel[];
  /** One line for the log. */
  description: string;
  close(): Promise<void>;
}

export interface ConnectOptions extends EngineOptions {
  /** How long an outage of the server may last, and who hears about it; without it, the client's defaults. */
  outage?: { patienceMs: number; onOutage(news: OutageNews): void } | undefined;
  /** Default: what settings and environment ask for. */
  kind?: EngineName | undefined;
}

/** Connects to the engine; one of this machine is started first. Nothing is billed. */
export async function connectEngine(
  config: Pick<TrainConfig, "base_url"> & Partial<TrainConfig>,
  options: ConnectOptions,
): Promise<EngineConnection> {
  const kind = options.kind ?? engineKind(config);
  const { model_name: model = bundledName } = config;
  let server: RunningEngine | undefined;
  if (isLocal(kind))
    server = await localEngines[kind].start({ ...options, model, config }).catch((error: unknown) => {
      throw isMissing(error) ? notHere(model, kind, error) : error;
    });
  const clientOptions: ClientOptions = {
    onWarning: (message) => options.logger.warn(message),
    ...(server
      ? { baseUrl: server.url, apiKey: server.apiKey }
      : kind === "hosted" && config.engine === "hosted"
        ? { baseUrl: defaultBaseUrl }
        : config.base_url === ""
          ? {}
          : { baseUrl: config.base_url }),
  };
  try {
    const models = await modelsAt(clientOptions);
    const address = server?.url ?? (config.base_url || process.env["TINKER_BASE_URL"] || "hosted Tinker");
    const { patienceMs, onOutage } = options.outage ?? {};
    const service = new ServiceClient({
      ...clientOptions,
      onOutage,
      ...(patienceMs === undefined ? {} : { timings: { outageMs: patienceMs, retryWindowMs: patienceMs } }),
    });
    const close = async () => {
      await service.close();
      await server?.close();
    };
    const description = server ? `${kind}, at ${address}` : address;
    return { kind, identity: server?.identity ?? service.baseUrl, service, models, description, close };
  } catch (error) {
    await server?.close();
    throw error;
  }
}

/** What a server offers. Unlike the clients that train, this gives up within seconds: nothing is lost yet. */
async function modelsAt(clientOptions: ClientOptions): Promise<OfferedModel[]> {
  const timings = {
    retryWindowMs: 4_000,
    retryMaxMs: 1_000,
    requestTimeoutMs: 10_000,
  };
  try {
    const service = new ServiceClient({ ...clientOptions, maxRetries: 2, timings });
    try {
      return await offeredModels(service);
    } finally {
      await service.close();
    }
  } catch (error) {
    if (error instanceof APIStatusError && (error.status === 401 || error.status === 403)) {
      throw new WhetstoneError(
        "cli/key-refused",
        `The server refused the API key (status ${error.status}). Set TINKER_API_KEY, in .env or the environment, to a key that is valid there.`,
        { cause: error },
      );
    }
    if (error instanceof CredentialError) throw new ConfigError("config/api-key", error.message, { cause: error });
    throw error;
  }
}

/** Refuses a model that the server does not offer, with the nearest that it does; returns the offer. */
export function checkModel(connection: EngineConnection, modelName: string): OfferedModel | undefined {
  const found = offerOf(connection.models, modelName);
  if (found || connection.models.length === 0) return found;
  const names = connection.models.filter(({ trainable }) => trainable !== false).map(({ name }) => name);
  const nearest = nearestModel(modelName, names) ?? names[0];
  throw new WhetstoneError(
    "cli/model-not-offered",
    `model_name=${modelName} is not offered by this server. It offers: ${names.join(", ")}. ` +
      (nearest === undefined ? "Use another server." : `The nearest: ${commandAgain({ model_name: nearest })}`),
  );
}

/** An engine of this machine wants the model on this machine, or on the hub. */
function notHere(modelName: string, kind: EngineName, cause: Error): WhetstoneError {
  const why = kind === "embedded" ? `${noKeyNotice}, and ` : "";
  return new WhetstoneError(
    "cli/model-not-here",
    `model_name=${modelName} cannot be trained here: ${why}${cause.message} For the hosted service put TINKER_API_KEY into .env, for a server ` +
      `name it with base_url=; or train what is here: ${commandAgain({ model_name: undefined, preset: "nano" })}`,
    { cause },
  );
}

/** The command that was given, with other values for some keys (undefined: without them), ready to be pasted. */
function commandAgain(changes: Readonly<Record<string, string | undefined>>): string {
  const given = process.argv.slice(2).filter((word) => !Object.keys(changes).some((key) => word.startsWith(`${key}=`)));
  const changed = Object.entries(changes).flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}`]));
  return redact(shellCommand(whet, ...given, ...changed));
}

/** Where a run keeps the embedded engine's checkpoints and log. */
export const engineFiles = (runPath: string) => ({
  stateDir: join(runPath, "engine"),
  logFile: join(runPath, "server.log"),
});
