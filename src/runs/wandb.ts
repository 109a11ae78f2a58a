// Weights & Biases, as its own client talks to it: GraphQL to announce the run, then a stream of history lines. Requests go out in the
// background, one at a time; the training loop never waits for them before the run ends. While the service is away lines are kept, and
// go out when it is back.
import { platform } from "node:os";
import { basename } from "node:path";
import { z } from "zod";
import { messageOf, WhetstoneError } from "../core/errors.ts";
import { toJsonLine } from "../core/jsonl.ts";
import { fetchFrom } from "../core/proxy.ts";
import type { MetricsRecord } from "./records.ts";
import type { MetricsSink, SinkKind } from "./sinks.ts";

const keys = {
  wandb_project: z.string().default("").describe("Weights & Biases project; needs WANDB_API_KEY"),
  wandb_name: z.string().default("").describe("name of the run there; empty: the run directory's name"),
};

export const weightsAndBiases: SinkKind<typeof keys> = {
  keys,
  async open({ wandb_project: project, wandb_name: name }, { runPath, logger, record }) {
    if (project === "") return undefined;
    const apiKey = process.env["WANDB_API_KEY"];
    if (!apiKey) {
      logger.warn("wandb_project is set but WANDB_API_KEY is not; Weights & Biases is left out");
      return undefined;
    }
    const baseUrl = process.env["WANDB_BASE_URL"];
    try {
      const sink = await WandbSink.start({
        apiKey,
        project,
        name: name || basename(runPath),
        runId: String(record["wandb_run_id"]),
        config: record,
        onTrouble: (message) => logger.warn(message),
        ...(baseUrl ? { baseUrl } : {}),
      });
      logger.info(`wandb    ${sink.url}`);
      return sink;
    } catch (error) {
      logger.warn(`Weights & Biases is left out: ${messageOf(error)}`);
      return undefined;
    }
  },
};

export interface WandbOptions {
  apiKey: string;
  project: string;
  /** Shown name of the run. */
  name: string;
  /** Stable id: a resumed run goes on under the same one. */
  runId: string;
  config: Readonly<Record<string, unknown>>;
  /** Default https://api.wandb.ai. */
  baseUrl?: string;
  /** Least time between two uploads. */
  intervalMs?: number;
  /** How long the end of a run waits for a service that does not answer; default 30 s. */
  closeMs?: number;
  /** Called once when the service stops answering, and once when it answers again. */
  onTrouble?(message: string): void;
}

const viewerQuery = "query Viewer { viewer { id entity username } }";

const upsertMutation = `mutation UpsertBucket($name: String, $project: String, $entity: String, $displayName: String, $config: JSONString, $host: String, $state: String) {
  upsertBucket(input: {name: $name, modelName: $project, entityName: $entity, displayName: $displayName, config: $config, host: $host, state: $state}) {
    bucket { id name displayName historyLineCount project { name entity { name } } }
    inserted
  }
}`;

interface UpsertAnswer {
  upsertBucket: {
    bucket: { name: string; historyLineCount: number | null; project: { name: string; entity: { name: string } } };
  };
}

/** Weights & Biases refused a request or did not answer. */
export class WandbError extends WhetstoneError {}

export class WandbSink implements MetricsSink {
  readonly name = "Weights & Biases";
  readonly url: string;
  readonly #options: WandbOptions;
  readonly #streamPath: string;
  readonly #startedMs = Date.now();
  #offset: number;
  /** Lines that the service does not have yet. */
  readonly #waiting: string[] = [];
  #summary: Record<string, unknown> = {};
  #sending: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #away = false;
  #refused: WandbError | undefined;

  /** Announces the run; rejects when the service does not take it. */
  static async start(options: WandbOptions): Promise<WandbSink> {
    const base = (options.baseUrl ?? "https://api.wandb.ai").replace(/\/+$/, "");
    const ask = async <T>(query: string, operationName: string, variables: Record<string, unknown>) => {
      const answer = (await post(`${base}/graphql`, options.apiKey, { query, variables, operationName })) as {
        data?: T;
        errors?: { message: string }[];
      };
      if (!answer.data || answer.errors?.length)
        throw new WandbError(
          "runs/wandb-refused",
          `Weights & Biases refused ${operationName}: ${answer.errors?.[0]?.message ?? "no data"}.`,
        );
      return answer.data;
    };
    const viewer = await ask<{ viewer: { entity: string } | null }>(viewerQuery, "Viewer", {});
    if (!viewer.viewer)
      throw new WandbError(
        "runs/wandb-refused",
        "Weights & Biases does not know the key in WANDB_API_KEY. Copy it again from your settings page.",
      );
    const config = Object.fromEntries(Object.entries(options.config).map(([key, value]) => [key, { value }]));
    const answer = await ask<UpsertAnswer>(upsertMutation, "UpsertBucket", {
      name: options.runId,
      project: options.project,
      entity: null,
      displayName: options.name,
      config: JSON.stringify({ ...config, _wandb: { value: { t: { 13: `${platform()}-${process.arch}` }, m: [] } } }),
      host: null,
      state: "running",
    });
    return new WandbSink(options, base, answer.upsertBucket.bucket);
  }

  private constructor(options: WandbOptions, base: string, bucket: UpsertAnswer["upsertBucket"]["bucket"]) {
    this.#options = options;
    this.#offset = bucket.historyLineCount ?? 0;
    const run = [bucket.project.entity.name, bucket.project.name, bucket.name].map(encodeURIComponent).join("/");
    this.#streamPath = `${base}/files/${run}/file_stream`;
    const [entity, project, name] = run.split("/");
    this.url = `${base.replace("://api.", "://")}/${entity}/${project}/runs/${name}`;
  }

  /** Lines of earlier sessions that the service never got go out first. */
  catchUp(history: readonly MetricsRecord[]): void {
    for (const record of history.slice(this.#offset)) this.metrics(record);
  }

  /** Queues one line of history. */
  metrics({ step, ...metrics }: MetricsRecord): void {
    if (this.#refused) return;
    const now = Date.now();
    const line = { ...metrics, _step: step, _timestamp: now / 1000, _runtime: (now - this.#startedMs) / 1000 };
    this.#waiting.push(toJsonLine(line).trimEnd());
    Object.assign(this.#summary, line);
    this.#timer ??= setTimeout(() => this.#send({}), this.#options.intervalMs ?? 5000).unref();
  }

  /** Uploads what is left and marks the run as ended. */
  async close(exitCode: number): Promise<void> {
    if (this.#refused) throw this.#refused;
    const deadline = Date.now() + (this.#options.closeMs ?? 30_000);
    for (;;) {
      this.#send({ complete: true, exitcode: exitCode });
      await this.#sending;
      if (this.#refused) throw this.#refused;
      if (!this.#away) return;
      if (Date.now() > deadline)
        throw new WandbError(
          "runs/wandb-unreachable",
          `Weights & Biases does not answer; ${this.#waiting.length} steps are not there. They are sent when the run goes on.`,
        );
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  /** One upload after another. What could not be sent stays in line. */
  #send(ending: { complete?: boolean; exitcode?: number }): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending = this.#sending.then(() => this.#upload(ending));
  }

  async #upload(ending: { complete?: boolean; exitcode?: number }): Promise<void> {
    const lines = this.#waiting.slice(0, maxLines);
    const runtime = Math.floor((Date.now() - this.#startedMs) / 1000);
    const summary = toJsonLine({ ...this.#summary, _wandb: { runtime } }).trimEnd();
    const files: Record<string, unknown> = { "wandb-summary.json": { offset: 0, content: [summary] } };
    if (lines.length > 0) files["wandb-history.jsonl"] = { offset: this.#offset, content: lines };
    const last = lines.length === this.#waiting.length;
    try {
      await post(this.#streamPath, this.#options.apiKey, { files, ...(last ? ending : {}) });
      this.#offset += lines.length;
      this.#waiting.splice(0, lines.length);
      if (this.#away) this.#options.onTrouble?.("Weights & Biases answers again; nothing was lost");
      this.#away = false;
      if (!last) await this.#upload(ending);
    } catch (error) {
      if (error instanceof WandbError && error.code === "runs/wandb-refused") {
        this.#refused = error;
        this.#options.onTrouble?.(`${error.message} It is left out from here on.`);
        return;
      }
      if (!this.#away)
        this.#options.onTrouble?.(
          `Weights & Biases does not answer (${messageOf(error)}); steps are kept and sent later`,
        );
      this.#away = true;
      if (ending.complete) return;
      this.#timer ??= setTimeout(() => this.#send({}), this.#options.intervalMs ?? 5000).unref();
    }
  }
}

/** Lines in one request: a long outage must not end in one huge body. */
const maxLines = 500;
const attempts = 4;

async function post(url: string, apiKey: string, body: unknown): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await fetchFrom(url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: `Basic ${Buffer.from(`api:${apiKey}`).toString("base64")}`,
          "user-agent": "whetstone",
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(20_000),
      });
      const text = await response.text();
      if (response.ok) return JSON.parse(text);
      if (response.status < 500 && response.status !== 429 && response.status !== 408)
        throw new WandbError(
          "runs/wandb-refused",
          `Weights & Biases answered ${response.status}: ${text.slice(0, 200)}.`,
        );
      if (attempt === attempts)
        throw new WandbError(
          "runs/wandb-unreachable",
          `Weights & Biases answered ${response.status} ${attempts} times.`,
        );
    } catch (error) {
      if (error instanceof WhetstoneError || attempt === attempts) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** attempt));
  }
}
