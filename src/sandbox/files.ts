// The file system that programs see: copies on a tmpfs that belongs to this jail alone, made by a process that holds them and starts zygotes
// among them (python/hold.py). The host's own files would remember, for every program on the machine, which names were asked for.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Held } from "../core/languages/language.ts";
import type { HeldCommand, HolderParts } from "./outer.ts";
import { SlotLost } from "./slot.ts";

const startTimeoutMs = 120_000;
const stderrKept = 4096;

/** What the holder says when the files are there: names that programs can import beyond the standard library. */
type Packages = readonly string[];

/** What comes along beside the interpreter. */
export interface HeldContent {
  /** Packages that are installed. */
  packages: boolean;
  /** Compilers, interpreters and what they need: files and folders. */
  tools: readonly Held[];
}

let numbers = 0;

export class HeldFiles {
  readonly #make: (parts: HolderParts) => HeldCommand;
  readonly #folder: string;
  readonly #content: HeldContent;
  #holder: { child: ChildProcess; command: HeldCommand; packages: Packages } | undefined;
  #starting: Promise<Packages> | undefined;
  #exited: Promise<void> = Promise.resolve();
  #closed = false;

  /** `folder`: where its socket and its mount point lie. */
  constructor(folder: string, content: HeldContent, make: (parts: HolderParts) => HeldCommand) {
    this.#folder = folder;
    this.#content = content;
    this.#make = make;
  }

  /** Starts the holder, and again when it has died; resolves when the files are there. */
  ready(): Promise<Packages> {
    if (this.#holder) return Promise.resolve(this.#holder.packages);
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  /** The command of a zygote among these files, which must be there. */
  get command(): HeldCommand {
    if (!this.#holder) throw new SlotLost("the process that holds the files of programs has ended");
    return this.#holder.command;
  }

  async #start(): Promise<Packages> {
    if (this.#closed) throw new SlotLost("the jail is closed");
    const name = join(this.#folder, `files-${++numbers}`);
    const command = this.#make({ door: `${name}.door`, target: name, ...this.#content });
    mkdirSync(name, { mode: 0o755 });
    const [program, ...args] = command.holder;
    // Descriptor 3 ends with this process, and the holder with it.
    const child = spawn(program!, args, { stdio: ["ignore", "pipe", "pipe", "pipe"], env: {}, cwd: "/" });
    for (const stream of child.stdio) stream?.on("error", () => {});
    let errors = "";
    let said = "";
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      errors = (errors + text).slice(-stderrKept);
    });
    this.#exited = new Promise((resolve) => {
      child.once("error", () => resolve());
      child.once("close", () => resolve());
    });
    void this.#exited.then(() => {
      if (this.#holder?.child === child) this.#holder = undefined;
    });
    try {
      const packages = await new Promise<Packages>((resolve, reject) => {
        const timer = setTimeout(() => reject(new SlotLost(`no files after ${startTimeoutMs} ms`)), startTimeoutMs);
        void this.#exited.then(() => {
          clearTimeout(timer);
          reject(new SlotLost(errors.trim() || "the process that holds the files of programs did not start"));
        });
        child.stdout!.setEncoding("utf8").on("data", (text: string) => {
          said += text;
          if (!said.endsWith("\n")) return;
          clearTimeout(timer);
          resolve(JSON.parse(said) as Packages);
        });
      });
      this.#holder = { child, command, packages };
      return packages;
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    } finally {
      if (this.#closed) child.kill("SIGKILL");
    }
  }

  /** Ends it with every zygote that it started; the next one starts another. */
  kill(): void {
    this.#holder?.child.kill("SIGKILL");
    this.#holder = undefined;
  }

  /** Ends it, and all that was started there. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#starting?.catch(() => {});
    this.kill();
    await this.#exited;
  }
}
