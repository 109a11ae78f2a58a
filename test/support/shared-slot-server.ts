// A server with SkyRL's ways, over the simulated engine: one copy of an adapter for training and sampling, so that sampling another
// version's weights puts them in the place of those in training, and sampling the version that was loaded last follows training; a
// fixed number of adapters; samplers that end with their model; no loss; no word about any of it, no end of a session, JSON only.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type { Engine, ModelSpec, SampleRequest, SamplerSource, TrainingBatch } from "../../src/engine/engine.ts";
import { EngineError } from "../../src/engine/errors.ts";
import { SimulatedEngine, type SimulatedEngineOptions } from "../../src/engine/simulated/engine.ts";
import { startServer } from "../../src/server/index.ts";
import { foldersInMemory } from "./folders.ts";

const newFolder = foldersInMemory();

/** The simulated engine with one slot per model. */
class SharedSlotEngine extends SimulatedEngine implements Engine {
  readonly #max: number;
  readonly #folder = newFolder();
  /** Of each model: the sampler whose weights are in its slot. */
  readonly #loaded = new Map<string, string>();
  readonly #samplers = new Map<string, { model: string; adapter: string }>();
  /** How many models are there. */
  get adapters(): number {
    return this.#loaded.size;
  }

  constructor(options: SimulatedEngineOptions, max: number) {
    super(options);
    this.#max = max;
  }

  override async createModel(modelId: string, spec: ModelSpec): Promise<void> {
    if (this.#loaded.size >= this.#max)
      throw new EngineError("engine/adapters", `Maximum number of LoRA adapters (${this.#max}) reached`);
    await super.createModel(modelId, spec);
    this.#loaded.set(modelId, "");
  }

  override async unloadModel(modelId: string): Promise<void> {
    this.#loaded.delete(modelId);
    await super.unloadModel(modelId);
  }

  override async forwardBackward(modelId: string, batch: TrainingBatch) {
    return { ...(await super.forwardBackward(modelId, batch)), metrics: {} };
  }

  override async createSampler(samplerId: string, source: SamplerSource): Promise<void> {
    if (source.kind === "base") return super.createSampler(samplerId, source);
    const live = source.kind === "live";
    const dir = live ? join(this.#folder, encodeURIComponent(samplerId)) : source.dir;
    const model = live ? source.modelId : decodeURIComponent(/checkpoints\/([^/]+)/.exec(source.dir)![1]!);
    if (live) {
      mkdirSync(dir, { recursive: true });
      await this.saveForSampler(model, dir);
    }
    this.#samplers.set(samplerId, { model, adapter: join(dir, "adapter.f64") });
  }

  override async sample(samplerId: string, request: SampleRequest) {
    const sampler = this.#samplers.get(samplerId);
    if (!sampler) return super.sample(samplerId, request);
    const { model, adapter } = sampler;
    if (!this.#loaded.has(model)) throw new EngineError("engine/not-loaded", `Model ${model} not loaded`);
    if (this.#loaded.get(model) !== samplerId) {
      const dir = newFolder();
      await this.saveState(model, dir);
      writeFileSync(join(dir, "adapter.f64"), readFileSync(adapter));
      await this.loadState(model, dir, { optimizer: true });
      this.#loaded.set(model, samplerId);
    }
    const now = `${samplerId} now`;
    await super.createSampler(now, { kind: "live", modelId: model });
    return super.sample(now, request).finally(() => super.releaseSampler(now));
  }
}

export interface SharedSlotServer {
  url: string;
  engine: SharedSlotEngine;
  /** Its stored checkpoints. */
  stateDir: string;
  /** What was asked, in order: `POST /asample`, … */
  asked: string[];
}

/** Gone when the test has ended. */
export async function sharedSlotServer(
  options: SimulatedEngineOptions = {},
  { maxAdapters = 1 }: { maxAdapters?: number } = {},
): Promise<SharedSlotServer> {
  const engine = new SharedSlotEngine({ modelName: "nano-coder", vocabSize: 1024, ...options }, maxAdapters);
  const stateDir = newFolder();
  const inner = await startServer({ stateDir, createEngine: async () => engine, apiKey: "tml-test", drainMs: 0 });
  const asked: string[] = [];
  const proxy = createServer(async (incoming, outgoing) => {
    const { url = "", method = "" } = incoming;
    asked.push(`${method} ${url.replace("/api/v1", "")}`);
    const body = await buffer(incoming);
    if (/\/finish$/.test(url) || (method === "DELETE" && url.includes("/checkpoints/")))
      return void outgoing.writeHead(404).end('{"detail":"Not Found"}');
    const headers = { ...incoming.headers, accept: "application/json" };
    const forwarded = send(`${inner.url}${url}`, { method, headers }, async (answer) => {
      const said = await buffer(answer);
      const { "content-length": _, ...others } = answer.headers;
      outgoing.writeHead(answer.statusCode ?? 502, others);
      outgoing.end(
        url.endsWith("/get_server_capabilities") ? '{"supported_models":[{"model_name":"nano-coder"}]}' : said,
      );
    });
    forwarded.on("error", () => outgoing.destroy());
    forwarded.end(body);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    proxy.closeAllConnections();
    await new Promise((resolve) => proxy.close(resolve));
    await inner.close();
  });
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return { url, engine, stateDir, asked };
}
