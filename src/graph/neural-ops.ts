// The ops of transformers that ONNX Runtime has fast kernels for: softmax, RMS norm, rotary positions; and SiLU, whose
// gradient is written by hand to save passes over memory.
import { withGradient } from "./custom-gradient.ts";
import { add, exp, multiply, negate, sigmoid, subtract } from "./elementwise-ops.ts";
import { GraphError } from "./errors.ts";
import { gatherElements, scatterAddElements } from "./index-ops.ts";
import { reduceTo, sum } from "./reduce-ops.ts";
import { scalar } from "./source-ops.ts";
import { apply, apply1, describe, type Op, staticDim, type Tensor } from "./tensor.ts";

const softmaxOp: Op<undefined> = {
  name: "softmax",
  infer: ([x]) => [{ dtype: "f32", shape: x!.shape }],
  emit: (emitter, { inputs, outputs }) => emitter.node("Softmax", inputs, outputs, { axis: -1 }),
  gradient: ({ outputs: [y], cotangents: [d] }) => {
    const product = multiply(d!, y!);
    return [subtract(product, multiply(y!, sum(product, [-1], { keepDims: true })))];
  },
};

const logSoftmaxOp: Op<undefined> = {
  name: "logSoftmax",
  infer: ([x]) => [{ dtype: "f32", shape: x!.shape }],
  emit: (emitter, { inputs, outputs }) => emitter.node("LogSoftmax", inputs, outputs, { axis: -1 }),
  gradient: ({ outputs: [y], cotangents: [d] }) => [subtract(d!, multiply(exp(y!), sum(d!, [-1], { keepDims: true })))],
};

/** Outputs: the normalised rows, and the reciprocal of each row's root mean square. */
const rmsNormOp: Op<{ epsilon: number }> = {
  name: "rmsNorm",
  infer: ([x, weight]) => {
    if (weight!.shape.length !== 1 || weight!.shape[0] !== x!.shape.at(-1)) {
      throw new GraphError("graph/shape", `rmsNorm cannot scale ${describe(x!)} by ${describe(weight!)}.`);
    }
    return [
      { dtype: "f32", shape: x!.shape },
      { dtype: "f32", shape: [...x!.shape.slice(0, -1), 1] },
    ];
  },
  emit: (emitter, { inputs, outputs, attributes: { epsilon } }) =>
    emitter.node("SimplifiedLayerNormalization", inputs, outputs, { axis: -1, epsilon, stash_type: 1 }),
  gradient: ({ inputs: [x, weight], outputs: [, inverse], cotangents: [d], needed }) => {
    const width = staticDim("The normalised axis", x!.shape.at(-1)!);
    const dX = (): Tensor => {
      const scaled = multiply(d!, weight!);
      const mean = multiply(sum(multiply(scaled, x!), [-1], { keepDims: true }), scalar(1 / width));
      const cubed = multiply(multiply(inverse!, inverse!), inverse!);
      return subtract(multiply(scaled, inverse!), multiply(x!, multiply(mean, cubed)));
    };
    const dWeight = (): Tensor => reduceTo(multiply(d!, multiply(x!, inverse!)), weight!.shape);
    return [needed[0] ? dX() : undefined, needed[1] ? dWeight() : undefined];
  },
};

/** Inputs: rows [length, heads · headDim], positions [length], and the tables of cosines and sines [positions, headDim / 2]. */
const ropeOp: Op<undefined> = {
  name: "rope",
  infer: ([x, positions, cos, sin]) => {
    const half = staticDim("A head", cos!.shape[1]!);
    const fits = x!.shape.length === 2 && positions!.shape[0] === x!.shape[0] && sin!.shape[1] === half;
    if (!fits || staticDim("A row", x!.shape[1]!) % (2 * half) !== 0) {
      throw new GraphError(
        "graph/shape",
        `rope cannot rotate ${describe(x!)} at ${describe(positions!)} by ${describe(cos!)}.`,
      );
    }
    return [{ dtype: "f32", shape: x!.shape }];
  },
  emit: (emitter, { inputs: [x, positions, cos, sin], outputs, inputTypes }) => {
    const width = staticDim("A row", inputTypes[0]!.shape[1]!);
    const [batched, wide, ids, rotated] = ["batched", "wide", "ids", "rotated"].map((name) => emitter.fresh(name));
    // Every row is a sequence of its own: ONNX Runtime allows no sequence longer than the tables.
    emitter.node("Unsqueeze", [x!, emitter.int64([1])], [batched!]);
    emitter.node("Cast", [positions!], [wide!], { to: 7 });
    emitter.node("Unsqueeze", [wide!, emitter.int64([1])], [ids!]);
    emitter.node("RotaryEmbedding", [batched!, ids!, cos!, sin!], [rotated!], { interleaved: 0 });
    emitter.node("Reshape", [rotated!, emitter.int64([-1, width])], outputs);
  },
  // A rotation's transpose turns the other way.
  gradient: ({ inputs: [, positions, cos, sin], cotangents: [d] }) => [rope(d!, positions!, cos!, negate(sin!))],
};

/** Along the last axis. */
export const softmax = (x: Tensor): Tensor => apply1(softmaxOp, [x], undefined);
export const logSoftmax = (x: Tensor): Tensor => apply1(logSoftmaxOp, [x], undefined);

export function rmsNorm(x: Tensor, weight: Tensor, epsilon: number): Tensor {
  return apply(rmsNormOp, [x, weight], { epsilon })[0]!;
}

/** Rotary position embedding in Hugging Face's layout: the first half of a head pairs with the second. */
export function rope(x: Tensor, positions: Tensor, cos: Tensor, sin: Tensor): Tensor {
  return apply1(ropeOp, [x, positions, cos, sin], undefined);
}

export function silu(x: Tensor): Tensor {
  const gate = sigmoid(x);
  const y = multiply(x, gate);
  return withGradient(y, [x], (d) => [multiply(d, subtract(add(gate, y), multiply(y, gate)))]);
}

/** The log-probabilities of `targets` [rows, slots] under `logits` [rows, vocabulary]. */
export function targetLogprobs(logits: Tensor, targets: Tensor): Tensor {
  const logprobs = logSoftmax(logits);
  return withGradient(gatherElements(logprobs, targets), [logits], (d) => [
    scatterAddElements(multiply(exp(logprobs), negate(sum(d, [-1], { keepDims: true }))), targets, d),
  ]);
}
