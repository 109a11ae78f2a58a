// 16-bit floats as numbers. JavaScript of Node 20 has no array of them.

let values: Float32Array | undefined;

/** Every value of a 16-bit float, indexed by its bits. */
export function float16Values(): Float32Array {
  values ??= Float32Array.from({ length: 1 << 16 }, (_, bits) => float16ToNumber(bits));
  return values;
}

function float16ToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** Widens 16-bit floats. */
export function widenFloat16(from: Uint16Array, to: Float32Array): void {
  const table = float16Values();
  for (let index = 0; index < from.length; index++) to[index] = table[from[index]!]!;
}

/** Widens bfloat16: the upper halves of 32-bit floats. */
export function widenBfloat16(from: Uint16Array, to: Float32Array): void {
  const bits = new Uint32Array(to.buffer, to.byteOffset, to.length);
  for (let index = 0; index < from.length; index++) bits[index] = from[index]! << 16;
}
