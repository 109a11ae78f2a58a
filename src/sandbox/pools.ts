// Where programs start: beside what every program sees, beside the packages that they mention, beside the tools of their language. A place comes with the
// first program that needs it, and stays.
import { availableParallelism } from "node:os";
import type { Held } from "../core/languages/language.ts";
import { languages } from "../core/languages/languages.ts";
import type { ControlServer } from "./control.ts";
import type { HeldContent, HeldFiles } from "./files.ts";
import { pathOf } from "./outer.ts";
import { Pool } from "./pool.ts";
import type { Program } from "./programs.ts";
import type { ZygoteFacts, ZygotePlan } from "./zygote.ts";

const maxPools = 4;
/** Control groups per zygote; each takes three descriptors. */
const maxCgroups = 100;

export interface PoolParts {
  control: ControlServer;
  plan: ZygotePlan;
  /** Files beyond those of every program; undefined where none are held. */
  hold: (content: HeldContent) => HeldFiles | undefined;
  /** Whether programs that are executed can start where there are no tools. */
  executesAnywhere: boolean;
  slots: number;
  patienceMs: number;
}

export class Pools {
  readonly plain: Pool;
  readonly #parts: PoolParts;
  /** Made with the first program that mentions a package. */
  readonly #withPackages: HeldFiles | undefined;
  /** With packages that take long to import, imported. */
  readonly #warm = new Map<string, Pool>();
  /** By their files. */
  readonly #toolboxes = new Map<string, { files: HeldFiles | undefined; pool: Pool }>();

  constructor(parts: PoolParts) {
    this.#parts = parts;
    this.plain = this.#pool([]);
    this.#withPackages = parts.hold({ packages: true, tools: [] });
  }

  #pool(preload: readonly string[], files = this.#parts.plan.files, held?: readonly Held[]): Pool {
    const tools = (held ?? []).map(pathOf);
    const { slots, plan, control, patienceMs } = this.#parts;
    const zygotes = Math.min(slots, availableParallelism());
    const spare = Math.ceil(slots / zygotes) + 1;
    // Running ones, ready ones, and some that have ended and are not known to have.
    const atOnce = Math.min(slots + 2 * spare + 2, maxCgroups);
    const readable = [...((plan.config["readable"] as string[] | undefined) ?? []), ...tools];
    const executes = held !== undefined;
    const ownPlan = { ...plan, files, slots: atOnce, config: { ...plan.config, preload, tools, readable, executes } };
    return new Pool(ownPlan, control, zygotes, spare, patienceMs);
  }

  /** Starts the zygotes; rejects when one does not start. */
  warm(): Promise<ZygoteFacts> {
    return this.plain.warm();
  }

  /** Where a program's files are; `texts` may mention packages. */
  async poolFor(program: Program, texts: readonly string[]): Promise<Pool> {
    if (program.command === null) return this.#poolForPython(texts);
    if (program.files.length === 0 && this.#parts.executesAnywhere) return this.plain;
    const tools = program.files;
    const key = tools.map(String).toSorted().join("\0");
    let toolbox = this.#toolboxes.get(key);
    if (!toolbox) {
      const files = this.#parts.hold({ packages: false, tools });
      toolbox = { files, pool: this.#pool([], files, tools) };
      this.#toolboxes.set(key, toolbox);
    }
    await toolbox.files?.ready(); // takes its time, which is not a slot's
    return toolbox.pool;
  }

  /** Programs start beside the packages that they mention. */
  async #poolForPython(texts: readonly string[]): Promise<Pool> {
    const { importedWords, slow: slowModules } = languages.python.packages!;
    const { plan } = this.#parts;
    const withPackages = this.#withPackages;
    const installed = (await plan.files?.ready()) ?? this.plain.facts?.slowPackages ?? [];
    if (installed.length === 0) return this.plain;
    const words = new Set(texts.flatMap((text) => [...importedWords(text)]));
    const used = installed.filter((name) => words.has(name));
    const slow = used.filter((name) => slowModules.includes(name));
    if (used.length === 0 || (slow.length === 0 && !withPackages)) return this.plain;
    const key = slow.join();
    const known = this.#warm.get(key);
    if (known) return known;
    // Every pool holds processes; past a few, numpy alone has to do, or nothing that is imported ahead.
    if (this.#warm.size >= maxPools) {
      const other = this.#warm.get("numpy") ?? this.#warm.get("") ?? this.#warm.values().next().value;
      return other!;
    }
    await withPackages?.ready();
    const pool = this.#warm.get(key) ?? this.#pool(slow, withPackages);
    this.#warm.set(key, pool);
    return pool;
  }

  async close(): Promise<void> {
    const toolboxes = [...this.#toolboxes.values()];
    const pools = [this.plain, ...this.#warm.values(), ...toolboxes.map(({ pool }) => pool)];
    await Promise.all(pools.map((pool) => pool.close()));
    const held = [this.#parts.plan.files, this.#withPackages, ...toolboxes.map(({ files }) => files)];
    await Promise.all(held.map((files) => files?.close() ?? Promise.resolve()));
  }
}
