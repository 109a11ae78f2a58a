// The order of problems: part of the contract, because a checkpoint stores only how many problems were used. Fisher–Yates from the
// last position down, on xoshiro128** seeded with ("data order", seed, epoch); each epoch has an order of its own.
import { Random } from "../core/random.ts";

/** The permutation of 0 … size-1 that an epoch goes through. */
export function epochOrder(size: number, seed: number, epoch: number): Uint32Array {
  const order = Uint32Array.from({ length: size }, (_, index) => index);
  const random = new Random("data order", seed, epoch);
  for (let last = size - 1; last > 0; last--) {
    const other = random.integer(last + 1);
    const moved = order[last]!;
    order[last] = order[other]!;
    order[other] = moved;
  }
  return order;
}
