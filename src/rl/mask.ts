// Which positions of a sequence are the model's own: a mask, kept as the stretches in which it is set. Position i predicts token i + 1.
// An answer behind its prompt is one stretch; a conversation has one for each of its turns.

/** The positions from `start` up to, not including, `end`. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
}

/** In order. */
export type Mask = readonly Stretch[];

/** How many positions are set. */
export const maskedCount = (mask: Mask): number => mask.reduce((sum, { start, end }) => sum + end - start, 0);

/** The values at the positions that are set, end to end. Those of one stretch are a view and not a copy. */
export function masked(values: Float32Array, mask: Mask): Float32Array {
  if (mask.length === 1) return values.subarray(mask[0]!.start, mask[0]!.end);
  const joined = new Float32Array(maskedCount(mask));
  let offset = 0;
  for (const { start, end } of mask) {
    joined.set(values.subarray(start, end), offset);
    offset += end - start;
  }
  return joined;
}

/** An array of `length` positions: `value` where the mask is set, 0 elsewhere. */
export function spread(value: number, mask: Mask, length: number): Float32Array {
  const array = new Float32Array(length);
  for (const { start, end } of mask) array.fill(value, start, end);
  return array;
}

/** Goes through the positions that are set; `place` counts them, as the values of \`masked\` are counted. */
export function eachMasked(mask: Mask, visit: (position: number, place: number) => void): void {
  let place = 0;
  for (const { start, end } of mask) for (let position = start; position < end; position++) visit(position, place++);
}
