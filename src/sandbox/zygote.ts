// A warm Python process that forks slots on demand. This end starts it, asks for slots, and notices when it dies.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Cgroups, ZygoteCgroups } from "./cgroups.ts";
import type { ControlServer } from "./control.ts";
import type { HeldFiles } from "./files.ts";
import { Slot, SlotLost } from "./slot.ts";
import { encodeMessage, type Message, MessageReader } from "./wire.ts";

const startTimeoutMs = 30_000;
const stderrKept = 4096;
/** A zygote that was killed is gone within this, or the process that holds its files does not answer. */
const goneWithinMs = 2_000;

/** What a zygote says about itself when it is warm. */
export interface ZygoteFacts {
  /** Installed packages that take long to import. */
  slowPackages: string[];
  /** Landlock ABI; 0: none. */
  landlock: number;
  /** Slots that have a control group. */
  cgroups: number;
}

export interface ZygoteEvents {
  slotReady(slot: Slot): void;
  /** A slot that was asked for will not come. */
  slotFailed(reason: string): void;
  died(reason: string): void;
}

export interface ZygotePlan {
  /** The files it will run among are there once `ready` resolves; the host's own where there are none. */
  files: HeldFiles | undefined;
  /** Without files. */
  argv: (cgroups: ZygoteCgroups | null) => readonly string[];
  /** Where control groups can be made, and for how many slots at a time. */
  cgroups: Cgroups | undefined;
  slots: number;
  /** Handed to zygote.py; the socket and the token are added. */
  config: Record<string, unknown>;
  socketInside: string;
}

/** One for each slot; none where they cannot be made any more, and programs are counted instead. */
function cgroupsFor(plan: ZygotePlan): ZygoteCgroups | null {
  try {
    return plan.cgroups?.forZygote(plan.slots) ?? null;
  } catch {
    return null;
  }
}

export class Zygote {
  readonly #child: ChildProcess;
  readonly #pipe: Duplex;
  readonly #control: ControlServer;
  readonly #token: string;
  readonly #events: ZygoteEvents;
  readonly #exited: Promise<void>;
  /** Slots asked for that have not connected yet. */
  readonly #awaited = new Set<number>();
  /** Questions that wait for their answer. */
  readonly #answers = new Map<number, () => void>();
  readonly #cgroups: ZygoteCgroups | null;
  readonly #files: HeldFiles | undefined;
  #onWarm: ((facts: ZygoteFacts) => void) | undefined;
  #stderr = "";
  #dead = false;
  #closing = false;

  private constructor(plan: ZygotePlan, control: ControlServer, events: ZygoteEvents) {
    this.#control = control;
    this.#events = events;
    this.#token = randomBytes(16).toString("hex");
    this.#cgroups = cgroupsFor(plan);
    this.#files = plan.files;
    const [command, ...args] = (plan.files?.command.argv ?? plan.argv)(this.#cgroups);
    // Any regular file, never read: sys.stdin is made once, here, and can seek only if it was made over a file.
    const stdin = openSync(fileURLToPath(import.meta.url), "r");
    try {
      this.#child = spawn(command!, args, { stdio: [stdin, "pipe", "pipe", "pipe"], env: {}, cwd: "/" });
    } finally {
      closeSync(stdin);
    }
    this.#pipe = this.#child.stdio[3] as Duplex;
    this.#pipe.on("error", () => {});
    const reader = new MessageReader((message) => this.#receive(message));
    this.#pipe.on("data", (chunk: Buffer) => reader.push(chunk));
    this.#child.stdout?.resume();
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-stderrKept);
    });
    this.#exited = new Promise((resolve) => {
      this.#child.once("error", (error) => {
        this.#die(error.message);
        resolve();
      });
      // "close", not "exit": stderr has been read to its end by then.
      this.#child.once("close", (code, signal) => {
        if (this.#cgroups) plan.cgroups?.remove(this.#cgroups);
        this.#die(`exit ${signal ?? code}${this.#stderr ? `: ${this.#stderr.trim()}` : ""}`);
        resolve();
      });
    });
    control.expect(this.#token, (id, socket, early) => {
      if (!this.#awaited.delete(id)) {
        socket.destroy();
        return;
      }
      events.slotReady(new Slot(socket, early, () => this.#command("K", id)));
    });
  }

  /** Resolves when the zygote is warm. */
  static async start(
    plan: ZygotePlan,
    control: ControlServer,
    events: ZygoteEvents,
  ): Promise<{ zygote: Zygote; facts: ZygoteFacts }> {
    await plan.files?.ready();
    const zygote = new Zygote(plan, control, events);
    const cgroups = zygote.#cgroups?.folders.length ?? 0;
    const config = { ...plan.config, socket: plan.socketInside, token: zygote.#token, cgroups };
    try {
      const facts = await zygote.#greet(Buffer.from(JSON.stringify(config)));
      return { zygote, facts };
    } catch (error) {
      await zygote.close();
      throw error;
    }
  }

  #greet(config: Buffer): Promise<ZygoteFacts> {
    this.#pipe.write(encodeMessage("W", config));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new SlotLost(`not warm after ${startTimeoutMs} ms`)), startTimeoutMs);
      this.#onWarm = (facts) => {
        clearTimeout(timer);
        resolve(facts);
      };
      void this.#exited.then(() => {
        clearTimeout(timer);
        reject(new SlotLost(this.#stderr.trim() || "it ended at once"));
      });
    });
  }

  #receive({ type, payload }: Message): void {
    if (type === "W") {
      this.#onWarm?.(JSON.parse(payload.toString("utf8")) as ZygoteFacts);
      return;
    }
    const id = payload.readUInt32LE(0);
    const value = payload.readInt32LE(4);
    if (type === "A") this.#answers.get(id)?.();
    // "D" of a slot that did connect shows as its closed socket.
    if (this.#awaited.delete(id))
      this.#events.slotFailed(
        type === "E"
          ? `fork failed (errno ${value})`
          : `it ended before connecting (status ${value}): ${this.#stderr.trim()}`,
      );
  }

  /** Slots that were asked for and are still to come. */
  get pending(): number {
    return this.#awaited.size;
  }

  /** Whether it still answers. A slot that does not may be its program's doing; a zygote never sees a program. */
  async answers(patienceMs: number): Promise<boolean> {
    const id = this.#control.nextSlotId();
    return new Promise((resolve) => {
      const finish = (answer: boolean) => {
        clearTimeout(timer);
        this.#answers.delete(id);
        resolve(answer);
      };
      const timer = setTimeout(() => finish(false), patienceMs);
      this.#answers.set(id, () => finish(true));
      this.#command("A", id);
      void this.#exited.then(() => finish(false));
    });
  }

  requestSlot(): void {
    const id = this.#control.nextSlotId();
    this.#awaited.add(id);
    this.#command("F", id);
  }

  #command(letter: string, id: number): void {
    if (this.#dead) return;
    const command = Buffer.alloc(5);
    command[0] = letter.charCodeAt(0);
    command.writeUInt32LE(id, 1);
    this.#pipe.write(command);
  }

  #die(reason: string): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#control.forget(this.#token);
    if (!this.#closing) this.#events.died(reason);
  }

  /** Kills the zygote and with it every slot; resolves when the process is gone. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#control.forget(this.#token);
    this.#pipe.destroy();
    this.#child.kill("SIGKILL");
    const timer = setTimeout(() => this.#files?.kill(), goneWithinMs);
    await this.#exited;
    clearTimeout(timer);
    for (const stream of this.#child.stdio) stream?.destroy();
  }
}
