// Arrays of numbers, and their shapes.
/** Arrays of numbers, one after the other. */
export function concat<Item extends Int32Array | Float32Array>(
  kind: new (length: number) => Item,
  parts: readonly Item[],
): Item {
  const whole = new kind(parts.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** The number of elements of a shape. */
export const elementCount = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);
