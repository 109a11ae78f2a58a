// The matrix product, with either operand transposed and a factor, so that no gradient needs a transposed copy.
import { broadcastShapes, type Dim } from "./dims.ts";
import { GraphError } from "./errors.ts";
import { reduceTo } from "./reduce-ops.ts";
import { apply1, describe, type Op, type Tensor, type TensorType } from "./tensor.ts";

interface Attributes {
  transA: boolean;
  transB: boolean;
  alpha: number;
}

/** The last two dimensions, transposed where asked. */
function matrixOf({ shape }: TensorType, transposed: boolean): [rows: Dim, columns: Dim] {
  const [rows, columns] = [shape.at(-2)!, shape.at(-1)!];
  return transposed ? [columns, rows] : [rows, columns];
}

const matmulOp: Op<Attributes> = {
  name: "matmul",
  infer: ([a, b], { transA, transB }) => {
    const batch = broadcastShapes(a!.shape.slice(0, -2), b!.shape.slice(0, -2));
    const fits = a!.shape.length >= 2 && b!.shape.length >= 2 && batch !== undefined;
    if (!fits || matrixOf(a!, transA)[1] !== matrixOf(b!, transB)[0]) {
      const spell = (type: TensorType, transposed: boolean): string =>
        describe(type) + (transposed ? " transposed" : "");
      throw new GraphError("graph/shape", `matmul cannot multiply ${spell(a!, transA)} by ${spell(b!, transB)}.`);
    }
    return [{ dtype: "f32", shape: [...batch, matrixOf(a!, transA)[0], matrixOf(b!, transB)[1]] }];
  },
  emit: (emitter, { inputs, outputs, inputTypes, attributes: { transA, transB, alpha } }) => {
    const flags = { alpha, transA: Number(transA), transB: Number(transB) };
    if (inputTypes.every((type) => type.shape.length === 2)) emitter.node("Gemm", inputs, outputs, flags);
    else if (!transA && !transB && alpha === 1) emitter.node("MatMul", inputs, outputs);
    else emitter.node("FusedMatMul", inputs, outputs, flags);
  },
  gradient: ({ inputs, cotangents, needed, attributes: { transA, transB, alpha } }) => {
    const [a, b, d] = [inputs[0]!, inputs[1]!, cotangents[0]!];
    const dA = (): Tensor =>
      transA ? matmul(b, d, { transA: transB, transB: true, alpha }) : matmul(d, b, { transB: !transB, alpha });
    const dB = (): Tensor =>
      transB ? matmul(d, a, { transA: true, transB: transA, alpha }) : matmul(a, d, { transA: !transA, alpha });
    return [needed[0] ? reduceTo(dA(), a.shape) : undefined, needed[1] ? reduceTo(dB(), b.shape) : undefined];
  },
};

/** alpha · a · b over the last two axes; leading axes broadcast. */
export function matmul(a: Tensor, b: Tensor, options: Partial<Attributes> = {}): Tensor {
  const { transA = false, transB = false, alpha = 1 } = options;
  return apply1(matmulOp, [a, b], { transA, transB, alpha });
}
