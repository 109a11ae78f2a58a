// TensorBoard event files: TFRecord frames around Event messages with scalar summaries.
// Frame: length (u64), crc of the length, data, crc of the data; the crc is CRC-32C, masked.
import { closeSync, openSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { writeAll } from "../core/files.ts";
import { MessageWriter } from "../core/protobuf.ts";
import type { MetricsRecord } from "./records.ts";
import type { MetricsSink, SinkKind } from "./sinks.ts";

const keys = {
  tensorboard: z.boolean().default(true).describe("write TensorBoard event files into the run directory"),
};

export const tensorBoard: SinkKind<typeof keys> = {
  keys,
  open: async ({ tensorboard }, { runPath }) => (tensorboard ? new TensorBoardSink(runPath) : undefined),
};

export class TensorBoardSink implements MetricsSink {
  readonly name = "TensorBoard";
  readonly #descriptor: number;

  /** Starts a new event file in `folder`; TensorBoard shows all files of a folder as one run, later steps replacing earlier ones. */
  constructor(folder: string, now = Date.now()) {
    const file = `events.out.tfevents.${Math.floor(now / 1000)}.${hostname() || "host"}.${process.pid}`;
    this.#descriptor = openSync(join(folder, file), "a");
    this.#write(eventAt(now).string(3, "brain.Event:2"));
  }

  metrics({ step, ...metrics }: MetricsRecord): void {
    const summary = new MessageWriter();
    for (const [tag, value] of Object.entries(metrics))
      summary.message(1, new MessageWriter().string(1, tag).float(2, value));
    this.#write(eventAt(Date.now()).varint(2, step).message(5, summary));
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #write(message: MessageWriter): void {
    const event = message.finish();
    const frame = Buffer.alloc(12 + event.length + 4);
    frame.writeBigUInt64LE(BigInt(event.length), 0);
    frame.writeUInt32LE(maskedCrc(frame.subarray(0, 8)), 8);
    frame.set(event, 12);
    frame.writeUInt32LE(maskedCrc(event), 12 + event.length);
    writeAll(this.#descriptor, frame);
  }
}

/** An event with its time in seconds. */
const eventAt = (milliseconds: number) => new MessageWriter().double(1, milliseconds / 1000);

const crcTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let crc = index;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc >>> 0;
});

/** CRC-32C (Castagnoli). */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ crcTable[(crc ^ byte) & 0xff]!;
  return (crc ^ 0xffffffff) >>> 0;
}

function maskedCrc(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
