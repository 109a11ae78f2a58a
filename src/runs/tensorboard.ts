// TensorBoard event files: TFRecord frames around Event messages with scalar summaries.
// Frame: length (u64), crc of the length, data, crc of the data; the crc is CRC-32C, masked.
import { closeSync, openSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
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
    this.#write(Buffer.concat([wallTime(now), lengthDelimited(3, Buffer.from("brain.Event:2"))]));
  }

  metrics({ step, ...metrics }: MetricsRecord): void {
    const values = Object.entries(metrics).map(([tag, value]) =>
      lengthDelimited(1, Buffer.concat([lengthDelimited(1, Buffer.from(tag)), float(2, value)])),
    );
    this.#write(Buffer.concat([wallTime(Date.now()), varintField(2, step), lengthDelimited(5, Buffer.concat(values))]));
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #write(event: Buffer): void {
    const frame = Buffer.alloc(12 + event.length + 4);
    frame.writeBigUInt64LE(BigInt(event.length), 0);
    frame.writeUInt32LE(maskedCrc(frame.subarray(0, 8)), 8);
    event.copy(frame, 12);
    frame.writeUInt32LE(maskedCrc(event), 12 + event.length);
    writeSync(this.#descriptor, frame);
  }
}

const wallTime = (milliseconds: number) => {
  const field = Buffer.alloc(9);
  field[0] = (1 << 3) | 1;
  field.writeDoubleLE(milliseconds / 1000, 1);
  return field;
};

const float = (number: number, value: number) => {
  const field = Buffer.alloc(5);
  field[0] = (number << 3) | 5;
  field.writeFloatLE(value, 1);
  return field;
};

const varintField = (number: number, value: number) => Buffer.concat([Buffer.from([number << 3]), varint(value)]);

const lengthDelimited = (number: number, bytes: Buffer) =>
  Buffer.concat([Buffer.from([(number << 3) | 2]), varint(bytes.length), bytes]);

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return Buffer.from([...bytes, rest]);
}

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
