// The folder and the socket by which slots reach this process. A slot names its zygote by a secret token and itself by a number.
import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { chmod, chown, mkdir } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { leftBehind } from "../core/files.ts";
import { minUsers } from "./outer.ts";

const tokenBytes = 16;
const helloBytes = tokenBytes + 4;
const maxRecent = 1_000;
const helloTimeoutMs = 30_000;

/** Receives a slot's connection: its number, its socket, and bytes that came right after the greeting. */
type Arrival = (slotId: number, socket: Socket, early: Buffer) => void;

/** Removed when this process ends without closing them. */
const folders = new Set<string>();
process.on("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const folderPrefix = "whetstone-jail-";

/** Folders of processes that were killed before they could clean up. */
function removeStale(base: string): void {
  for (const folder of leftBehind(base, folderPrefix))
    try {
      rmSync(folder, { recursive: true, force: true });
    } catch {} // another user's
}

export class ControlServer {
  readonly folder: string;
  readonly socketName = "control";
  readonly #server: Server;
  readonly #arrivals = new Map<string, Arrival>();
  readonly #sockets = new Set<Socket>();
  /** Of the last slots, so that those that are alive differ in their users too (outer.ts). */
  readonly #recent: number[] = [];

  private constructor(folder: string) {
    this.folder = folder;
    this.#server = createServer((socket) => this.#greet(socket));
  }

  /** `slotUser`: the one user that connects, when it is another than ours; null: any. */
  static async open(slotUser: number | null | undefined): Promise<ControlServer> {
    // A socket path has room for about 100 bytes.
    const base = tmpdir().length <= 60 ? tmpdir() : "/tmp";
    removeStale(base);
    const folder = mkdtempSync(join(base, `${folderPrefix}${process.pid}-`));
    folders.add(folder);
    const control = new ControlServer(folder);
    const others = slotUser !== undefined;
    // Other users may pass through, not look around.
    await chmod(folder, others ? 0o711 : 0o700);
    await mkdir(control.scratchFolder);
    await chmod(control.scratchFolder, others ? 0o1733 : 0o700);
    const path = join(folder, control.socketName);
    await new Promise<void>((resolve, reject) => {
      control.#server.once("error", reject);
      control.#server.listen({ path, backlog: 256 }, resolve);
    });
    if (slotUser) await chown(path, slotUser, slotUser);
    await chmod(path, slotUser === null ? 0o666 : 0o600);
    return control;
  }

  /** Scratch folders of the "landlock" level lie here. */
  get scratchFolder(): string {
    return join(this.folder, "scratch");
  }

  /** A number that no other slot of this jail has. Any: a program can see the user that is made of it, and must not see how many came before. */
  nextSlotId(): number {
    let id = randomInt(2 ** 32);
    while (this.#recent.includes(id % minUsers)) id = randomInt(2 ** 32);
    this.#recent.push(id % minUsers);
    if (this.#recent.length > maxRecent) this.#recent.shift();
    return id;
  }

  expect(token: string, arrival: Arrival): void {
    this.#arrivals.set(token, arrival);
  }

  forget(token: string): void {
    this.#arrivals.delete(token);
  }

  #greet(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    let hello: Buffer = Buffer.alloc(0);
    socket.setTimeout(helloTimeoutMs, () => socket.destroy());
    const listen = (chunk: Buffer) => {
      hello = hello.length === 0 ? chunk : Buffer.concat([hello, chunk]);
      if (hello.length < helloBytes) return;
      socket.off("data", listen);
      socket.setTimeout(0);
      const arrival = this.#arrivals.get(hello.toString("hex", 0, tokenBytes));
      if (arrival) arrival(hello.readUInt32LE(tokenBytes), socket, hello.subarray(helloBytes));
      else socket.destroy();
    };
    socket.on("data", listen);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    rmSync(this.folder, { recursive: true, force: true });
    folders.delete(this.folder);
  }
}
