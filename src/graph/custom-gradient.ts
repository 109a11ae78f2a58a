// A value with a gradient of one's own: where the derived gradient would be correct but slower or larger than it needs to be.
import { apply1, type Op, type Tensor } from "./tensor.ts";

interface Attributes {
  gradient: (cotangent: Tensor) => readonly Tensor[];
}

/** Input 0 is the value; the others are what the gradient is taken with respect to. */
const customGradientOp: Op<Attributes> = {
  name: "customGradient",
  alias: true,
  infer: ([value]) => [{ dtype: value!.dtype, shape: value!.shape }],
  emit: () => {},
  gradient: ({ cotangents: [d], attributes: { gradient } }) => [undefined, ...gradient(d!)],
};

/** `value` itself; its gradient with respect to `inputs` is what `gradient` makes of the cotangent, and nothing else. */
export function withGradient(
  value: Tensor,
  inputs: readonly Tensor[],
  gradient: (cotangent: Tensor) => readonly Tensor[],
): Tensor {
  return apply1(customGradientOp, [value, ...inputs], { gradient });
}

/** The same value; no gradient flows back through it. */
export const stopGradient = (x: Tensor): Tensor => withGradient(x, [], () => []);
