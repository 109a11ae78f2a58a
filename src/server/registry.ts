// Sessions, models and samplers, and the journal on disk that brings them back after a restart. Ids follow the hosted scheme
// (`SESSION:train:0`, `SESSION:sample:0`), so a repeated creation with the same numbers is the same thing.
//
// What a restart cannot bring back is a model's live weights: a model that was trained on is then marked lost, and says so.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { writeFileAtomic } from "../core/files.ts";
import { JsonLinesWriter, readJsonLines, toJsonLine } from "../core/jsonl.ts";
import type { LoraSpec } from "../engine/engine.ts";
import { badRequest, explainDisk, ServerError, shuttingDown } from "./errors.ts";

export interface SessionRecord {
  id: string;
  createdAt: number;
  tags: readonly string[];
  userMetadata: Readonly<Record<string, unknown>>;
  sdkVersion: string;
  projectId?: string | undefined;
  displayName?: string | undefined;
  /** What its client said when it ended it. */
  finished?: { reason: string; detail?: string | undefined } | undefined;
}

export interface ModelRecord {
  id: string;
  sessionId: string;
  sequence: number;
  baseModel: string;
  lora: LoraSpec;
  userMetadata: Readonly<Record<string, unknown>>;
  createdAt: number;
  lastRequestAt: number;
  /** True once any training request was accepted: from then on its weights exist only in memory. */
  touched: boolean;
  /** Optimizer steps the engine has applied, and the sequence number of the last one. */
  appliedSteps: number;
  lastAppliedSequence: number;
  state: "live" | "lost" | "unloaded";
}

export interface SamplerRecord {
  id: string;
  sessionId: string;
  sequence: number;
  baseModel: string;
  /** Absent: the base model, or the unnamed snapshot of a model. */
  modelPath?: string | undefined;
  /** Which checkpoint stood under that path; one saved later under the same name is another. */
  checkpointUid?: string | undefined;
  /** Set for an unnamed snapshot: the model it was taken from. Such a sampler ends with the process. */
  snapshotOf?: string | undefined;
}

type JournalEntry =
  | { event: "session"; record: SessionRecord }
  | { event: "project"; session: string; project: string; at: number }
  | { event: "finished"; session: string; finished: NonNullable<SessionRecord["finished"]>; at: number }
  | { event: "model"; record: ModelRecord }
  | { event: "touched"; model: string; at: number }
  | { event: "step"; model: string; sequence: number; steps: number; at: number }
  | { event: "unloaded"; model: string; at: number }
  | { event: "sampler"; record: SamplerRecord };

export class Registry {
  readonly #path: string;
  readonly #journal: JsonLinesWriter;
  #closed = false;
  readonly #sessions = new Map<string, SessionRecord>();
  readonly #models = new Map<string, ModelRecord>();
  readonly #samplers = new Map<string, SamplerRecord>();
  readonly #now: () => number;

  /** Opens the journal under `stateDir`; models that were in training when the last process ended are lost. */
  constructor(stateDir: string, now: () => number = Date.now) {
    this.#now = now;
    this.#path = join(stateDir, "registry.jsonl");
    for (const entry of readJsonLines(this.#path, () => {})) this.#apply(entry as JournalEntry);
    for (const model of this.#models.values()) if (model.state === "live" && model.touched) model.state = "lost";
    this.#compact();
    this.#journal = new JsonLinesWriter(this.#path);
  }

  createSession(fields: Omit<SessionRecord, "id" | "createdAt">): SessionRecord {
    const record: SessionRecord = { ...fields, id: randomUUID(), createdAt: this.#now() };
    this.#write({ event: "session", record });
    return record;
  }

  session(id: string): SessionRecord {
    const record = this.#sessions.get(id);
    if (record) return record;
    throw new ServerError(
      404,
      "server/unknown-session",
      `There is no session "${id.slice(0, 80)}". Create one first; a client does that by itself when it starts.`,
    );
  }

  /** Newest first. */
  get sessions(): SessionRecord[] {
    return [...this.#sessions.values()].reverse();
  }

  setProject(sessionId: string, projectId: string): void {
    this.session(sessionId);
    this.#write({ event: "project", session: sessionId, project: projectId, at: this.#now() });
  }

  /** The first word counts. */
  finishSession(session: SessionRecord, finished: NonNullable<SessionRecord["finished"]>): void {
    if (!session.finished) this.#write({ event: "finished", session: session.id, finished, at: this.#now() });
  }

  /** The session that new work goes into; one that was finished takes none. */
  openSession(id: string): SessionRecord {
    const record = this.session(id);
    if (!record.finished) return record;
    throw badRequest(
      "server/session-finished",
      `Session ${id} was finished by its client (${record.finished.reason}). Make a new ServiceClient.`,
    );
  }

  /** The model with these numbers, new or already there (then with the fields it was made with). */
  createModel(
    sessionId: string,
    sequence: number,
    fields: Pick<ModelRecord, "baseModel" | "lora" | "userMetadata">,
  ): { record: ModelRecord; created: boolean } {
    const id = `${sessionId}:train:${sequence}`;
    const known = this.#models.get(id);
    if (known) return { record: known, created: false };
    this.openSession(sessionId);
    const at = this.#now();
    const record: ModelRecord = {
      ...fields,
      id,
      sessionId,
      sequence,
      createdAt: at,
      lastRequestAt: at,
      touched: false,
      appliedSteps: 0,
      lastAppliedSequence: 0,
      state: "live",
    };
    this.#write({ event: "model", record });
    return { record: this.#models.get(id)!, created: true };
  }

  findModel(id: string): ModelRecord | undefined {
    return this.#models.get(id);
  }

  model(id: string): ModelRecord {
    const record = this.#models.get(id);
    if (record) return record;
    throw new ServerError(
      404,
      "server/unknown-model",
      `There is no model "${id.slice(0, 80)}". Create it with create_model, or check the id.`,
    );
  }

  /** Newest first. */
  get models(): ModelRecord[] {
    return [...this.#models.values()].reverse();
  }

  /** Notes that a model's weights now differ from what could be made again. */
  touch(model: ModelRecord): void {
    model.lastRequestAt = this.#now();
    if (!model.touched) this.#write({ event: "touched", model: model.id, at: model.lastRequestAt });
  }

  /** Notes an applied optimizer step; on disk before the client hears of it. */
  recordStep(model: ModelRecord, sequence: number): void {
    this.#write({ event: "step", model: model.id, sequence, steps: model.appliedSteps + 1, at: this.#now() });
  }

  markUnloaded(model: ModelRecord): void {
    this.#write({ event: "unloaded", model: model.id, at: this.#now() });
  }

  /** The sampler with these numbers, new or already there. */
  createSampler(
    sessionId: string,
    sequence: number,
    fields: Omit<SamplerRecord, "id" | "sessionId" | "sequence">,
  ): { record: SamplerRecord; created: boolean } {
    const id = `${sessionId}:sample:${sequence}`;
    const known = this.#samplers.get(id);
    if (known) return { record: known, created: false };
    this.openSession(sessionId);
    const record: SamplerRecord = { ...fields, id, sessionId, sequence };
    // A snapshot lives in memory only; there is nothing to bring back.
    if (record.snapshotOf === undefined) this.#write({ event: "sampler", record });
    else this.#samplers.set(id, record);
    return { record, created: true };
  }

  findSampler(id: string): SamplerRecord | undefined {
    return this.#samplers.get(id);
  }

  get samplers(): SamplerRecord[] {
    return [...this.#samplers.values()];
  }

  forgetSampler(id: string): void {
    this.#samplers.delete(id);
  }

  /** From here on nothing is written: work that a restart overtook must not be counted. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#journal.close();
  }

  #write(entry: JournalEntry): void {
    if (this.#closed) throw shuttingDown();
    try {
      this.#journal.append(entry);
    } catch (error) {
      throw explainDisk(error, this.#path);
    }
    this.#apply(entry);
  }

  #apply(entry: JournalEntry): void {
    if (entry.event === "session") this.#sessions.set(entry.record.id, { ...entry.record });
    else if (entry.event === "model") this.#models.set(entry.record.id, { ...entry.record });
    else if (entry.event === "sampler") this.#samplers.set(entry.record.id, entry.record);
    else if (entry.event === "project") {
      const session = this.#sessions.get(entry.session);
      if (session) session.projectId = entry.project;
    } else if (entry.event === "finished") {
      const session = this.#sessions.get(entry.session);
      if (session) session.finished = entry.finished;
    } else {
      const model = this.#models.get(entry.model);
      if (!model) return;
      model.lastRequestAt = entry.at;
      if (entry.event === "touched") model.touched = true;
      else if (entry.event === "unloaded") model.state = "unloaded";
      else {
        model.appliedSteps = entry.steps;
        model.lastAppliedSequence = entry.sequence;
      }
    }
  }

  /** Rewrites the journal as what it amounts to. */
  #compact(): void {
    const entries: JournalEntry[] = [
      ...[...this.#sessions.values()].map((record) => ({ event: "session" as const, record })),
      ...[...this.#models.values()].map((record) => ({ event: "model" as const, record })),
      ...[...this.#samplers.values()].map((record) => ({ event: "sampler" as const, record })),
    ];
    writeFileAtomic(this.#path, entries.map(toJsonLine).join(""));
  }
}
