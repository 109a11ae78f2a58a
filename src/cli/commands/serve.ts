// `./whet serve`: the Tinker-compatible server by itself, for any Tinker client.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { AuditedEngine } from "../../engine/audited.ts";
import {
  clientFlags,
  type ModelText,
  modelText,
  ServerError,
  type ServerOptions,
  startServer,
  type TinkerServer,
} from "../../server/index.ts";
import { loadTokenizer } from "../../tokenizer/index.ts";
import { commandOf } from "../command.ts";
import { ensureRuntime } from "../engines/embedded/runtime.ts";
import { bundledName, embeddedModel, isMissing, modelNameOf } from "../engines/model.ts";
import { chatBeside } from "../serve/openai.ts";
import { simulatedOptions, simulatedParts } from "../serve/simulated.ts";

const ServeOptions = z.strictObject({
  engine: z
    .enum(["embedded", "simulated"])
    .default("embedded")
    .describe("embedded: trains for real; simulated: for tests"),
  model: z
    .string()
    .optional()
    .describe("the embedded engine's model: a folder, a GGUF file or a hub id; the bundled one unless given"),
  model_name: z.string().optional().describe("the name clients ask for; the model's unless given"),
  threads: z.int().min(0).default(0).describe("embedded: threads that compute; 0: OMP_NUM_THREADS, else all cores"),
  port: z.int().min(0).max(65535).default(8000).describe("0: any free one. The host is always 127.0.0.1"),
  api_key: z
    .string()
    .regex(/^tml-\S+$/, 'it must start with "tml-"')
    .optional()
    .describe("what clients must send; else TINKER_API_KEY, else one is made and printed"),
  state_dir: z
    .string()
    .optional()
    .describe("where runs and checkpoints are kept; ~/.cache/whetstone/serve/… unless given"),
  max_body_mb: z.number().positive().max(4096).default(64).describe("largest request body"),
  max_queue: z.int().min(1).default(4096).describe("requests accepted and not finished; more get 429"),
  max_samplers: z
    .int()
    .min(1)
    .default(64)
    .describe("samplers held in memory; idle ones of saved weights make room and are opened again when asked"),
  session_timeout_s: z
    .number()
    .positive()
    .default(900)
    .describe("a client silent for this long is gone; its models are freed"),
  client_flags: z
    .array(z.enum(clientFlags))
    .default([])
    .describe("client features to turn on, separated by commas: retrieve_futures, join_sampling_session, cancel"),
  gap_limit_s: z.number().positive().default(30).describe("how long a missing sequence number holds a model up"),
  exit_with_parent: z
    .boolean()
    .default(false)
    .describe("also stop when standard input closes, as when the parent ends"),
  openai: z
    .boolean()
    .default(false)
    .describe(
      "also serve the OpenAI API: chat completions of the base model and of checkpoints by their tinker:// paths",
    ),
  audit: z
    .string()
    .optional()
    .describe("a file that gets one JSON line per completed operation, before its answer is sent"),
  ...simulatedOptions,
});
type Options = z.output<typeof ServeOptions>;

const say = (line: string) => console.error(`whetstone: ${line}`);

export const command = commandOf(ServeOptions, {
  usage: "serve [key=value …]",
  about: [
    "Serves the Tinker API on this machine. Point any Tinker client at it with TINKER_BASE_URL and TINKER_API_KEY.",
  ],
  async run({ options }) {
    const parts = audited(
      options,
      options.engine === "simulated" ? await simulatedParts(options) : await embedded(options),
    );
    const chat = options.openai ? chatBeside(options) : undefined;
    // Listened for before the line is printed: whoever reads it may stop the server at once.
    const stopped = stopRequest(options.exit_with_parent);
    let onEngineLost: ((error: Error) => void) | undefined;
    const engineLost = new Promise<"engine lost">((resolve) => {
      onEngineLost = (error) => {
        say(`${error.message} Stopping, so that whoever started this server can start it again.`);
        resolve("engine lost");
      };
    });
    const { server, apiKey } = await start(options, { ...parts, onEngineLost, beside: chat?.beside });
    const chatAddress = await chat?.open(server.url, apiKey);
    console.log(`whetstone: serving the Tinker API at ${server.url}`);
    if (chatAddress) console.log(`whetstone: serving the OpenAI API at ${chatAddress}`);
    const end = await Promise.race([stopped, engineLost]);
    // Nobody is left to read the answers once the parent has gone.
    await chat?.close();
    await server.close(end === "parent gone" ? 0 : undefined);
    return end === "engine lost" ? 1 : 0;
  },
});

type EngineParts = Pick<ServerOptions, "createEngine" | "text" | "onEngineLost" | "beside">;

/** The same parts with an engine that writes down what it did, where that is asked for. */
function audited(options: Options, parts: EngineParts): EngineParts {
  if (options.audit === undefined) return parts;
  const path = resolve(options.audit);
  return { ...parts, createEngine: async () => new AuditedEngine(await parts.createEngine(), path) };
}

async function embedded(options: Options): Promise<EngineParts> {
  const model = options.model ?? bundledName;
  const dir = await embeddedModel(model).catch((error: unknown) => {
    throw isMissing(error) ? new ConfigError("config/bad-value", `model=${error.message}`, { cause: error }) : error;
  });
  const name = options.model_name ?? modelNameOf(model);
  // Fetched and loaded here, so that the simulated engine starts without ONNX Runtime.
  await ensureRuntime(say);
  const { createEmbeddedEngine } = await import("../../engine/index.ts");
  const tokenizer = await loadTokenizer(dir);
  const text: ModelText = { ...modelText(tokenizer), endTokens: endTokensOf(dir) };
  return {
    createEngine: () =>
      createEmbeddedEngine({ models: [{ name, dir }], ...(options.threads > 0 && { threads: options.threads }) }),
    text: (model) => (model === name ? text : undefined),
  };
}

/** What ends a completion, as the model's folder says: generation_config.json, else config.json. */
function endTokensOf(dir: string): number[] {
  for (const file of ["generation_config.json", "config.json"]) {
    const path = join(dir, file);
    if (!existsSync(path)) continue;
    const { eos_token_id: ids } = JSON.parse(readFileSync(path, "utf8")) as { eos_token_id?: number | number[] | null };
    if (typeof ids === "number") return [ids];
    if (Array.isArray(ids)) return ids;
  }
  return [];
}

async function start(options: Options, parts: EngineParts): Promise<{ server: TinkerServer; apiKey: string }> {
  const environmentKey = process.env["TINKER_API_KEY"];
  const apiKey = options.api_key ?? (environmentKey || `tml-${randomBytes(18).toString("base64url")}`);
  const common = {
    ...parts,
    apiKey,
    port: options.port,
    maxBodyBytes: Math.floor(options.max_body_mb * 2 ** 20),
    maxQueue: options.max_queue,
    maxSamplers: options.max_samplers,
    sessionTimeoutMs: options.session_timeout_s * 1000,
    gapLimitMs: options.gap_limit_s * 1000,
    clientFlags: options.client_flags,
    log: say,
    // The server of a run that was killed a moment ago may still be on its way out.
    lockWaitMs: options.exit_with_parent ? 20_000 : 0,
  };
  const server = await openStateDir(options, (stateDir) => startServer({ ...common, stateDir }));
  if (options.api_key === undefined && !environmentKey) say(`the API key of this server is ${apiKey}`);
  return { server, apiKey };
}

/** The folder asked for; else the first of the usual ones that no other server holds. */
async function openStateDir<T>(options: Options, open: (stateDir: string) => Promise<T>): Promise<T> {
  if (options.state_dir !== undefined) return open(resolve(options.state_dir));
  const base = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "whetstone", "serve", options.engine);
  for (let number = 1; ; number++) {
    try {
      return await open(number === 1 ? base : `${base}-${number}`);
    } catch (error) {
      if (!(error instanceof ServerError && error.code === "server/state-locked") || number >= 100) throw error;
    }
  }
}

/** Resolves when the server is asked to stop; a second signal ends the process at once. */
function stopRequest(withParent: boolean): Promise<"asked" | "parent gone"> {
  return new Promise((resolve) => {
    const stop = () => {
      process.once("SIGINT", () => process.exit(130));
      process.once("SIGTERM", () => process.exit(130));
      resolve("asked");
    };
    process.once("SIGTERM", stop);
    if (!withParent) {
      process.once("SIGINT", stop);
      return;
    }
    // Ctrl-C and a closed terminal reach every process; the parent still needs this server while it saves its state.
    for (const signal of ["SIGINT", "SIGHUP"]) process.on(signal, () => {});
    const parentGone = () => resolve("parent gone");
    if (process.connected) process.once("disconnect", parentGone);
    process.stdin.once("end", parentGone).once("close", parentGone).resume();
    // Waiting for the parent must not keep a server alive that failed to start.
    (process.stdin as Partial<Socket>).unref?.();
  });
}
