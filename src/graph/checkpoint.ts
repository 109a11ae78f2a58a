// Trading time for memory: a part of a graph whose inner values are computed again in the backward pass instead of being kept.
import { pullBack } from "./autodiff.ts";
import { withGradient } from "./custom-gradient.ts";
import { scan } from "./scan-op.ts";
import { reshape } from "./shape-ops.ts";
import type { Tensor } from "./tensor.ts";

/**
 * `f(x)`. Its gradient, with respect to `x` and the `parameters` that `f` uses, starts from `x` again. The second computation is
 * the body of a loop of one turn, so that it cannot begin before the cotangent it needs is there.
 */
export function checkpoint(x: Tensor, parameters: readonly Tensor[], f: (x: Tensor) => Tensor): Tensor {
  return withGradient(f(x), [x, ...parameters], (d) => {
    const once = (tensor: Tensor): Tensor => reshape(tensor, [1, ...tensor.shape]);
    const { stacked } = scan([], [once(x), once(d)], (_, [again, cotangent]) => ({
      carried: [],
      stacked: pullBack([f(again!)], [cotangent!], [again!, ...parameters]),
    }));
    return stacked.map((gradient) => reshape(gradient, gradient.shape.slice(1)));
  });
}
