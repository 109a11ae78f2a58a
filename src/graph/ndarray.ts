// Small, slow helpers over row-major arrays of doubles: what the interpreter's op definitions are written in.
import type { NdArray } from "./tensor.ts";

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, dim) => product * dim, 1);
}

export function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length).fill(1);
  for (let axis = shape.length - 2; axis >= 0; axis--) strides[axis] = strides[axis + 1]! * shape[axis + 1]!;
  return strides;
}

/** Fills an array by a function of the multi-index, which is reused between calls. */
export function fill(shape: readonly number[], value: (index: readonly number[]) => number): NdArray {
  const data = new Float64Array(elementCount(shape));
  const index = new Array<number>(shape.length).fill(0);
  for (let position = 0; position < data.length; position++) {
    data[position] = value(index);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      if (++index[axis]! < shape[axis]!) break;
      index[axis] = 0;
    }
  }
  return { shape: [...shape], data };
}

/** Reads an element; leading axes that the array lacks are dropped and axes of size 1 repeat (broadcasting). */
export function at(array: NdArray, index: readonly number[]): number {
  const strides = stridesOf(array.shape);
  const skipped = index.length - array.shape.length;
  let position = 0;
  for (const [axis, stride] of strides.entries()) {
    position += array.shape[axis] === 1 ? 0 : index[axis + skipped]! * stride;
  }
  return array.data[position]!;
}

export function mapElements(array: NdArray, f: (value: number) => number): NdArray {
  return { shape: array.shape, data: array.data.map(f) };
}
