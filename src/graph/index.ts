// The tensor-graph compiler. Tensors are built with functions (`matmul(x, weight)`), differentiated with `gradients`, and
// compiled with `Session.compile`.
export { gradients, pullBack } from "./autodiff.ts";
export { checkpoint } from "./checkpoint.ts";
export { stopGradient, withGradient } from "./custom-gradient.ts";
export { addDims, type Dim, multiplyDims, type Shape } from "./dims.ts";
export {
  add,
  exp,
  greater,
  less,
  maximum,
  minimum,
  multiply,
  negate,
  sigmoid,
  subtract,
  where,
} from "./elementwise-ops.ts";
export { gather, gatherElements, gatherOnce, scatterAddElements, scatterAddRows } from "./index-ops.ts";
export { matmul } from "./matmul-op.ts";
export { logSoftmax, rmsNorm, rope, silu, softmax, targetLogprobs } from "./neural-ops.ts";
export { toOnnx } from "./onnx-graph.ts";
export { broadcastTo, sum } from "./reduce-ops.ts";
export { scan } from "./scan-op.ts";
export { floats, Session, Sessions, type Value, value } from "./session.ts";
export { concat, reshape, split, transpose, zeros } from "./shape-ops.ts";
export { constant, input, scalar } from "./source-ops.ts";
export type { Tensor } from "./tensor.ts";
