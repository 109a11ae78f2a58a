// Causal attention between token rows that lie packed, without padding, in one array. Blocks of sequences are spread out to a
// common length for the matrix products and packed again behind them. A block's sequences may continue shared prefixes: the prefix
// is computed once, its keys and values are read by every sequence that continues it, and the gradients of all of them add up.
//
// Rows that only pad point at a dummy row, the last one. Its cotangent is always zero (no loss ever depends on it, and masked
// keys have probability zero), so gradients can be gathered instead of scattered.
import {
  add,
  addDims,
  broadcastTo,
  concat,
  type Dim,
  gather,
  gatherOnce,
  input,
  matmul,
  multiplyDims,
  reshape,
  softmax,
  split,
  sum,
  type Tensor,
  transpose,
  withGradient,
} from "../graph/index.ts";
import type { DecoderConfig } from "./architecture.ts";
import type { Projections } from "./transformer.ts";

/** "plain": whole sequences (or the prefixes themselves); "shared": continuations of prefixes; "tree": sequences that begin alike, as one. */
export type BlockKind = "plain" | "shared" | "tree";

/** A block's layout as graph inputs. Sequences lie as [groups, members], the members of a group sharing one prefix. */
interface BlockInputs {
  kind: BlockKind;
  length: Dim;
  prefixLength: Dim;
  /** [groups, members, length]: the row of each place. */
  rows: Tensor;
  /** [rows]: the place of each row among rows; rows elsewhere point at padding. */
  places: Tensor;
  /** Shared blocks only. [groups, prefix]: the row of each place of a prefix; and [rows]: the place of each row there. */
  prefixRows?: Tensor;
  prefixPlaces?: Tensor;
  /** Added to the scores: 0 where a query may look at a key, a large negative number elsewhere. */
  bias: Tensor;
}

function blockInputs(kind: BlockKind): BlockInputs {
  const [groups, members, length, prefix] = ["groups", "members", "length", "prefix"].map((dim) => `${kind}_${dim}`);
  const keys = kind === "shared" ? addDims(prefix!, length!) : length!;
  const block: BlockInputs = {
    kind,
    length: length!,
    prefixLength: kind === "shared" ? prefix! : 0,
    rows: input(`${kind}.rows`, [groups!, members!, length!], "i32"),
    places: input(`${kind}.places`, ["rows"], "i32"),
    bias: input(`${kind}.bias`, kind === "plain" ? [length!, 1, keys] : [groups!, 1, length!, 1, keys]),
  };
  if (kind === "shared") {
    block.prefixRows = input("shared.prefix_rows", [groups!, prefix!], "i32");
    block.prefixPlaces = input("shared.prefix_places", ["rows"], "i32");
  }
  return block;
}

/** Attention of all rows over the blocks' sequences: [rows, heads · headDim]. */
export function packedAttention(
  config: DecoderConfig,
  kinds: readonly BlockKind[],
  { query, key, value }: Projections,
): Tensor {
  const { numHeads, numKvHeads, headDim } = config;
  const repeat = numHeads / numKvHeads;
  const rows = query.shape[0]!;
  const byHead = (x: Tensor, width: number): Tensor => transpose(reshape(x, [rows, numKvHeads, width]), [1, 0, 2]);
  const queries = byHead(query, repeat * headDim);
  const [keys, values] = [byHead(key, headDim), byHead(value, headDim)];

  const blocks = kinds.map(blockInputs);
  const spread = blocks.map((block) => {
    const [groups, members] = block.rows.shape as [Dim, Dim];
    const keyCount = addDims(block.prefixLength, block.length);
    const perKvHead = [numKvHeads, groups, members, multiplyDims(block.length, repeat)];
    const own = reshape(gatherOnce(queries, block.rows, block.places, 1), [...perKvHead, headDim]);
    const scores = matmul(own, keyEntries(keys, block), { transB: true, alpha: headDim ** -0.5 });
    const grouped = reshape(scores, [numKvHeads, groups, members, block.length, repeat, keyCount]);
    const weights = reshape(softmax(add(grouped, block.bias)), scores.shape);
    return reshape(matmul(weights, keyEntries(values, block)), [numKvHeads, places(block), repeat * headDim]);
  });
  const packed = gather(concat(spread, 1), input("places", ["rows"], "i32"), 1);
  // Each block takes back the cotangents of its own rows; padding takes the dummy row's, which is zero.
  const joined = withGradient(packed, spread, (d) =>
    blocks.map((block, i) => reshape(gather(d, block.rows, 1), spread[i]!.shape)),
  );
  return reshape(transpose(joined, [1, 0, 2]), query.shape);
}

function places(block: BlockInputs): Dim {
  return block.rows.shape.reduce<Dim>(multiplyDims, 1);
}

/** The keys or values each sequence of a block looks at: [heads, groups, members, prefix + length, headDim]. */
function keyEntries(x: Tensor, block: BlockInputs): Tensor {
  if (block.kind !== "shared") return gatherOnce(x, block.rows, block.places, 1);
  const [groups, members] = block.rows.shape as [Dim, Dim];
  const [heads, , size] = x.shape as [Dim, Dim, Dim];
  const prefixRows = reshape(block.prefixRows!, [groups, 1, block.prefixLength]);
  const keyRows = concat([broadcastTo(prefixRows, [groups, members, block.prefixLength]), block.rows], 2);
  return withGradient(gather(x, keyRows, 1), [x], (d) => {
    const [toPrefix, toOwn] = split(d, 3, [block.prefixLength, block.length]);
    const prefix = reshape(sum(toPrefix!, [2]), [heads, multiplyDims(groups, block.prefixLength), size]);
    const own = reshape(toOwn!, [heads, multiplyDims(multiplyDims(groups, members), block.length), size]);
    return [add(gather(prefix, block.prefixPlaces!, 1), gather(own, block.places, 1))];
  });
}
