// What stands behind a dashboard's link: the page, the list of runs, and for each run its index and the streams of those who watch.
import type { IncomingMessage, ServerResponse } from "node:http";
import { sendJson } from "../core/own-server.ts";
import { Control, requestControl } from "../runs/controls.ts";
import { readAsset } from "./assets.ts";
import { DashboardError, notFound } from "./errors.ts";
import { LiveStream } from "./live.ts";
import { answer } from "./routes.ts";
import { RunIndex } from "./run-index.ts";
import { listRuns } from "./run-list.ts";

/** How often a watched journal is looked at. */
const lookMs = 250;
/** Indexes that nobody watches are kept up to this many. */
const maxIndexes = 24;

interface Watched {
  index: RunIndex;
  streams: Set<LiveStream>;
}

export class DashboardApp {
  readonly #roots: readonly string[];
  /** By path; the last used is the last one. */
  readonly #watched = new Map<string, Watched>();
  readonly #timer: NodeJS.Timeout;

  constructor(roots: readonly string[]) {
    this.#roots = roots;
    this.#timer = setInterval(() => this.#look(), lookMs);
    this.#timer.unref();
  }

  /** Answers a GET; false where nothing is at that address. */
  async show(
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    query: URLSearchParams,
  ): Promise<boolean> {
    if (!path.startsWith("/api/")) {
      const asset = await readAsset(path);
      if (asset) response.writeHead(200, { "content-type": asset.type }).end(asset.bytes);
      return asset !== undefined;
    }
    if (path === "/api/runs") {
      sendJson(response, 200, { runs: listRuns(this.#roots) });
      return true;
    }
    const [, id, below = ""] = /^\/api\/run\/([^/]+)(\/.*)?$/.exec(path) ?? [];
    if (id === undefined) return false;
    const watched = this.#watch(id);
    if (below === "/live") this.#stream(watched, request, response);
    else sendJson(response, 200, await answer(watched.index, below, query));
    return true;
  }

  /** Passes on what a page asks of a live run. */
  act(path: string, body: unknown): unknown {
    const run = /^\/api\/run\/([^/]+)\/control$/.exec(path);
    if (!run) throw notFound(path);
    const control = Control.safeParse(body);
    if (!control.success)
      throw new DashboardError(
        400,
        "dashboard/control",
        `${JSON.stringify(body)?.slice(0, 200)} is no control of a run. The page sends pause, go-on, save, evaluate, stop and learning-rate.`,
      );
    return { id: requestControl(this.#pathOf(run[1]!), control.data, "dashboard") };
  }

  /** Sends those who watch the last that the journals say, and ends their streams. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(
      [...this.#watched.values()].map(async ({ index, streams }) => {
        if (streams.size > 0) await index.catchUp();
        for (const stream of streams) stream.end();
        index.close();
      }),
    );
  }

  #watch(encodedId: string): Watched {
    const path = this.#pathOf(encodedId);
    const known = this.#watched.get(path);
    const watched = known ?? { index: new RunIndex(path), streams: new Set<LiveStream>() };
    watched.index.onProgress = () => {
      for (const stream of watched.streams) stream.flush();
    };
    this.#watched.delete(path);
    this.#watched.set(path, watched);
    this.#forget();
    return watched;
  }

  /** Only runs that are listed can be named: nothing of an address becomes part of a path. */
  #pathOf(encodedId: string): string {
    let id = "";
    try {
      id = decodeURIComponent(encodedId);
    } catch {
      throw notFound(encodedId);
    }
    const run = listRuns(this.#roots).find((entry) => entry.id === id);
    if (!run)
      throw new DashboardError(
        404,
        "dashboard/no-run",
        `There is no run ${JSON.stringify(id)} here. Go back to the list of runs.`,
      );
    return run.path;
  }

  #forget(): void {
    for (const [path, { index, streams }] of this.#watched) {
      if (this.#watched.size <= maxIndexes) return;
      if (streams.size > 0) continue;
      index.close();
      this.#watched.delete(path);
    }
  }

  #stream({ index, streams }: Watched, request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/event-stream", "x-accel-buffering": "no" });
    const lastId = request.headers["last-event-id"];
    const stream = new LiveStream(index, response, Array.isArray(lastId) ? lastId[0] : lastId);
    streams.add(stream);
    response.once("close", () => streams.delete(stream));
    response.on("drain", () => stream.flush());
    stream.flush();
    void index.catchUp().then(() => stream.flush());
  }

  #look(): void {
    for (const { index, streams } of this.#watched.values()) {
      if (streams.size === 0 || index.isWalking) continue;
      void index.catchUp().then(() => {
        for (const stream of streams) stream.flush();
      });
    }
  }
}
