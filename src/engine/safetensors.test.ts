import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { foldersInMemory } from "../../test/support/folders.ts";
import { EngineError } from "./errors.ts";
import { SafetensorsFile } from "./safetensors.ts";
import { writeSafetensors } from "./write-safetensors.ts";

const folder = foldersInMemory();

/** A file with this header (an object, or raw text) and this many bytes of data. */
function fileWith(header: unknown, data: Uint8Array | number): string {
  const text = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.byteLength));
  const path = join(folder(), "x.safetensors");
  writeFileSync(path, Buffer.concat([length, text, typeof data === "number" ? Buffer.alloc(data) : data]));
  return path;
}

function opening(path: string): () => void {
  return () => new SafetensorsFile(path).close();
}

const refused = (path: string) =>
  expect(opening(path)).toThrow(expect.objectContaining({ code: "engine/bad-safetensors" }));

test("what is written is read back bit for bit", () => {
  const tensor = fc.record({
    values: fc.float32Array({ minLength: 0, maxLength: 20 }),
    name: fc.string({ minLength: 1 }).filter((name) => name !== "__metadata__" && name !== "__proto__"),
  });
  fc.assert(
    fc.property(fc.uniqueArray(tensor, { selector: (item) => item.name, maxLength: 5 }), (items) => {
      const path = join(folder(), "x.safetensors");
      writeSafetensors(
        path,
        new Map(items.map((item) => [item.name, { data: item.values, shape: [item.values.length] }])),
      );
      const file = new SafetensorsFile(path);
      for (const { name, values } of items) {
        expect(Buffer.from(file.readFloat32(name).buffer)).toEqual(Buffer.from(values.slice().buffer));
      }
      file.close();
    }),
    { numRuns: 30 },
  );
});

test("f16 and bf16 widen to the numbers they stand for", () => {
  const half = [0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x3555];
  const brain = [0x3f80, 0xc000, 0x0001, 0x7f80];
  const data = new Uint8Array(Uint16Array.from([...half, ...brain]).buffer);
  const path = fileWith(
    {
      half: { dtype: "F16", shape: [6], data_offsets: [0, 12] },
      brain: { dtype: "BF16", shape: [2, 2], data_offsets: [12, 20] },
    },
    data,
  );
  const file = new SafetensorsFile(path);
  expect([...file.readFloat32("half")]).toEqual([
    1,
    -2,
    2 ** -24,
    65504,
    Number.POSITIVE_INFINITY,
    Math.fround(1365 / 4096),
  ]);
  expect([...file.readFloat32("brain", [2, 2])]).toEqual([1, -2, 2 ** -133, Number.POSITIVE_INFINITY]);
  file.close();
});

test("a file cut at any length is refused", () => {
  const path = join(folder(), "whole.safetensors");
  writeSafetensors(path, new Map([["a", { data: Float32Array.of(1, 2, 3), shape: [3] }]]));
  const whole = readFileSync(path);
  const cut = join(folder(), "cut.safetensors");
  for (let length = 0; length < whole.byteLength; length++) {
    writeFileSync(cut, whole.subarray(0, length));
    refused(cut);
  }
});

test.each([
  [
    "a header longer than the file",
    () => {
      const path = join(folder(), "x");
      const bytes = Buffer.alloc(64);
      bytes.writeBigUInt64LE(2n ** 62n);
      writeFileSync(path, bytes);
      return path;
    },
  ],
  ["a header that is not JSON", () => fileWith("{not json", 0)],
  ["a header that is a list", () => fileWith([], 0)],
  ["an unknown dtype", () => fileWith({ a: { dtype: "F4", shape: [2], data_offsets: [0, 1] } }, 1)],
  ["a dtype from the prototype", () => fileWith({ a: { dtype: "toString", shape: [2], data_offsets: [0, 1] } }, 1)],
  [
    "a shape that needs more bytes than it has",
    () => fileWith({ a: { dtype: "F32", shape: [3], data_offsets: [0, 8] } }, 8),
  ],
  ["a negative size", () => fileWith({ a: { dtype: "F32", shape: [-1], data_offsets: [0, 4] } }, 4)],
  ["a fractional size", () => fileWith({ a: { dtype: "F32", shape: [0.5, 2], data_offsets: [0, 4] } }, 4)],
  ["offsets that run backwards", () => fileWith({ a: { dtype: "F32", shape: [0], data_offsets: [4, 0] } }, 4)],
  ["offsets past the end", () => fileWith({ a: { dtype: "F32", shape: [2], data_offsets: [0, 8] } }, 4)],
  [
    "tensors that overlap",
    () =>
      fileWith(
        {
          a: { dtype: "F32", shape: [2], data_offsets: [0, 8] },
          b: { dtype: "F32", shape: [1], data_offsets: [4, 8] },
        },
        8,
      ),
  ],
  ["data that belongs to no tensor", () => fileWith({ a: { dtype: "F32", shape: [1], data_offsets: [0, 4] } }, 8)],
])("%s is refused", (_, make) => refused(make()));

test("asking for a missing tensor, another shape or an integer tensor names it", () => {
  const path = fileWith({ a: { dtype: "I32", shape: [1], data_offsets: [0, 4] } }, 4);
  const file = new SafetensorsFile(path);
  expect(() => file.readFloat32("b")).toThrow(/no tensor "b"/);
  expect(() => file.readFloat32("a", [2])).toThrow(/shape \[1\].*needs \[2\]/);
  expect(() => file.readFloat32("a")).toThrow(/as I32/);
  file.close();
});

test("a missing file says so", () => {
  expect(opening("/nowhere/at/all.safetensors")).toThrow(EngineError);
  expect(opening("/nowhere/at/all.safetensors")).toThrow(expect.objectContaining({ code: "engine/missing-file" }));
});
