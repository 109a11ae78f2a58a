// What people may ask of a run while it trains: pause, go on, save, evaluate, stop, another learning rate. Whoever asks puts a small
// file into the run's `controls` folder; the process that trains takes it there, writes a `control` event, and acts (rl/controls.ts).
// A file and not a socket: it needs no port and no key, and only who may write into the run's directory can ask.
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { replaceFile } from "../core/files.ts";
import { lockHolder } from "../core/lock-file.ts";
import { RunError, resumeCommand, runFiles } from "./directory.ts";

/** What can be asked of a live run. */
export const Control = z.discriminatedUnion("kind", [
  /** Finish what is being sampled, train no further. */
  z.strictObject({ kind: z.literal("pause") }),
  z.strictObject({ kind: z.literal("go-on") }),
  /** Save a checkpoint of the policy as it is now. */
  z.strictObject({ kind: z.literal("save") }),
  /** Measure the policy as it is now. */
  z.strictObject({ kind: z.literal("evaluate") }),
  /** Finish the update under way, save, end: what Ctrl-C does. */
  z.strictObject({ kind: z.literal("stop") }),
  z.strictObject({ kind: z.literal("learning-rate"), value: z.number().positive() }),
]);
export type Control = z.output<typeof Control>;

/** A request as it lies in the folder. */
export const ControlRequest = z.strictObject({
  /** Milliseconds since the epoch. */
  askedAt: z.number(),
  /** Who asks: "command", "dashboard". */
  by: z.string().max(100),
  control: Control,
});
export type ControlRequest = z.output<typeof ControlRequest> & { id: string };

/** More requests than this are not left waiting, and a larger file is no request. */
const maxRequests = 100;
const maxBytes = 4096;
const fileName = /^[0-9]{14}-[0-9a-f]{16}\.json$/;

/** Milliseconds since the epoch, a little ahead after many requests at once. */
let lastRequest = 0;

/**
 * Asks a live run to do something; any process of the same user may. It is done at the next step's beginning, or at once while the run
 * waits for answers. Returns the request's id, which the `control` event of the journal repeats. Throws RunError when nobody would act
 * on it.
 */
export function requestControl(runPath: string, control: Control, by = "command"): string {
  if (lockHolder(join(runPath, runFiles.lock)) === undefined)
    throw new RunError(
      "runs/not-live",
      `No process trains ${runPath}, so nobody would act on "${control.kind}". Go on with it (${resumeCommand(runPath)}), then ask again.`,
    );
  const folder = join(runPath, runFiles.controls);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (readdirSync(folder).length >= maxRequests)
    throw new RunError(
      "runs/controls-full",
      `${maxRequests} requests wait in ${folder} already. The run takes them before its next step; ask again then.`,
    );
  // Requests of one process keep their order, however quickly they follow each other.
  lastRequest = Math.max(Date.now(), lastRequest + 1);
  const id = `${String(lastRequest).padStart(14, "0")}-${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
  const request = ControlRequest.parse({ askedAt: Date.now(), by, control });
  replaceFile(join(folder, `${id}.json`), (temporary) =>
    writeFileSync(temporary, JSON.stringify(request), { mode: 0o600, flag: "wx" }),
  );
  return id;
}

/** The requests that wait for a run, as the process that trains it reads them. */
export class ControlInbox {
  readonly #folder: string;
  readonly #warn: (message: string) => void;

  /** What is no request is removed, and `warn` is called. */
  constructor(runPath: string, warn: (message: string) => void) {
    this.#folder = join(runPath, runFiles.controls);
    this.#warn = warn;
  }

  /** What was asked and not removed yet, oldest first. */
  waiting(): ControlRequest[] {
    return this.#names()
      .filter((name) => fileName.test(name))
      .flatMap((name) => {
        const request = this.#read(name);
        if (request) return [request];
        rmSync(join(this.#folder, name), { force: true, recursive: true });
        return [];
      });
  }

  /** The request was written down, or is not to be acted on. */
  remove({ id }: ControlRequest): void {
    rmSync(join(this.#folder, `${id}.json`), { force: true });
  }

  #names(): string[] {
    const folder = lstatSync(this.#folder, { throwIfNoEntry: false });
    if (!folder) return [];
    if (!folder.isDirectory() || !isOurs(folder) || (folder.mode & 0o022) !== 0) {
      this.#warn(`${this.#folder} is not a folder that only you can write, so no request in it is acted on`);
      return [];
    }
    return readdirSync(this.#folder).sort().slice(0, maxRequests);
  }

  #read(name: string): ControlRequest | undefined {
    const path = join(this.#folder, name);
    try {
      const file = lstatSync(path);
      if (!file.isFile() || !isOurs(file) || file.size > maxBytes) throw new Error("it is no small file of this user");
      return { id: name.replace(/\.json$/, ""), ...ControlRequest.parse(JSON.parse(readFileSync(path, "utf8"))) };
    } catch (error) {
      this.#warn(`${path} is no request and was removed: ${error instanceof Error ? error.message.slice(0, 200) : ""}`);
      return undefined;
    }
  }
}

/** Windows has no owners to compare. */
const isOurs = ({ uid }: { uid: number }) => process.getuid === undefined || uid === process.getuid();

/** A control in words. */
export function describeControl(control: Control): string {
  return control.kind === "learning-rate" ? `learning_rate=${control.value}` : control.kind;
}
