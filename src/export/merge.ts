// Adds an adapter to its base model's weights and writes the sum as a model of its own. Tensors pass through a few rows at a time, so the
// memory it takes does not grow with the model. The product is summed in double precision and rounded once.
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { turnTaker } from "../core/turns.ts";
import { bytesPerElement, type TensorEntry } from "../engine/safetensors.ts";
import { SafetensorsWriter, type TensorSpec, tensorBytes } from "../engine/write-safetensors.ts";
import type { Adapter, AdapterLayer } from "./adapter.ts";
import { type BaseModel, type BaseTensor, BaseWeights, companionsOf, readJsonFile } from "./base-model.ts";
import { ExportError } from "./errors.ts";
import { type FloatType, isFloat, narrow } from "./narrow.ts";

/** What the merged weights are stored as: as the base has them, or all alike. */
export const mergedTypes = ["base", "float32", "bfloat16", "float16"] as const;
export type MergedType = (typeof mergedTypes)[number];
const stored: Readonly<Record<MergedType, FloatType | undefined>> = {
  base: undefined,
  float32: "F32",
  bfloat16: "BF16",
  float16: "F16",
};

interface MergeOptions {
  /** A model larger than this is written as several files with an index. */
  maxShardBytes: number;
  signal: AbortSignal;
  onProgress?(writtenBytes: number, totalBytes: number): void;
}

/** Elements that are computed at once. */
const blockElements = 1 << 20;
const embedding = "model.embed_tokens.weight";
const head = "lm_head.weight";

/** One tensor of the merged model. */
interface Piece extends TensorSpec {
  source: BaseTensor;
  layer: AdapterLayer | undefined;
}

/** The merged model as it will be, checked against base and adapter, before anything is written. */
export class MergePlan {
  readonly totalBytes: number;
  /** True where the head gets weights of its own that were the embedding's before. */
  readonly unties: boolean;
  readonly #pieces: readonly Piece[];
  readonly #weights: BaseWeights;
  readonly #config: Record<string, unknown>;
  readonly #base: BaseModel;
  readonly #adapter: Adapter;

  constructor(base: BaseModel, adapter: Adapter, type: MergedType) {
    this.#base = base;
    this.#adapter = adapter;
    const configPath = base.files.get("config.json");
    if (configPath === undefined)
      throw new ExportError("export/no-base", `base=${base.name} has no config.json. Name a Hugging Face model.`);
    this.#config = readJsonFile(configPath);
    if (this.#config["quantization_config"])
      throw new ExportError(
        "export/no-base",
        `base=${base.name} is quantized (${configPath} has quantization_config), so nothing can be added to its weights. Name the unquantized model.`,
      );
    this.#weights = new BaseWeights(base);
    try {
      this.#pieces = planPieces(base, this.#weights, adapter, type);
    } catch (error) {
      this.close();
      throw error;
    }
    this.totalBytes = this.#pieces.reduce((sum, piece) => sum + tensorBytes(piece), 0);
    // A config that says nothing and has no head is tied too.
    this.unties = adapter.layers.has("lm_head") && this.#config["tie_word_embeddings"] !== false;
    if (type !== "base") for (const key of ["dtype", "torch_dtype"]) if (key in this.#config) this.#config[key] = type;
    if (this.unties) this.#config["tie_word_embeddings"] = false;
  }

  close(): void {
    this.#weights.close();
  }

  /** Writes weights, config and what else belongs to the model into an empty folder. */
  async write(dir: string, options: MergeOptions): Promise<void> {
    const shards = this.#shards(options.maxShardBytes);
    const map: Record<string, string> = {};
    let written = 0;
    for (const [number, pieces] of shards.entries()) {
      const name =
        shards.length === 1 ? "model.safetensors" : `model-${five(number + 1)}-of-${five(shards.length)}.safetensors`;
      const writer = new SafetensorsWriter(join(dir, name), pieces);
      try {
        for (const piece of pieces) {
          map[piece.name] = name;
          written = await this.#copy(piece, writer, written, options);
        }
        writer.finish();
      } finally {
        writer.close();
      }
    }
    if (shards.length > 1)
      writeText(dir, "model.safetensors.index.json", { metadata: { total_size: this.totalBytes }, weight_map: map });
    writeText(dir, "config.json", this.#config);
    for (const [name, path] of companionsOf(this.#base))
      if (name !== "config.json") copyFileSync(path, join(dir, name));
  }

  #shards(maxBytes: number): Piece[][] {
    const shards: Piece[][] = [[]];
    let bytes = 0;
    for (const piece of this.#pieces) {
      if (bytes > 0 && bytes + tensorBytes(piece) > maxBytes) {
        shards.push([]);
        bytes = 0;
      }
      shards.at(-1)!.push(piece);
      bytes += tensorBytes(piece);
    }
    return shards;
  }

  async #copy(
    { source: { entry, file }, layer, dtype }: Piece,
    writer: SafetensorsWriter,
    written: number,
    { signal, onProgress }: MergeOptions,
  ): Promise<number> {
    const turn = turnTaker();
    const columns = entry.shape.at(-1) ?? 1;
    const total = (entry.end - entry.start) / bytesPerElement[entry.dtype];
    const product = layer && productOf(this.#adapter, layer);
    // Whole rows at a time, as the product needs them.
    const block = Math.max(columns, Math.floor(blockElements / columns) * columns);
    for (let from = 0; from < total; from += block) {
      await turn();
      signal.throwIfAborted();
      const count = Math.min(block, total - from);
      let bytes: Uint8Array;
      if (!product && dtype === entry.dtype) {
        const size = bytesPerElement[entry.dtype];
        bytes = file.readBytes(entry.start + from * size, count * size);
      } else {
        const values = file.readElements(entry, from, count);
        product?.(values, from / columns, count / columns);
        bytes = narrow(values, dtype as FloatType);
      }
      writer.append(bytes);
      written += bytes.byteLength;
      onProgress?.(written, this.totalBytes);
    }
    return written;
  }
}

function planPieces(base: BaseModel, { tensors }: BaseWeights, adapter: Adapter, type: MergedType): Piece[] {
  const pieces: Piece[] = [];
  const open = new Map(adapter.layers);
  const add = (name: string, source: BaseTensor) => {
    const layer = name.endsWith(".weight") ? open.get(name.slice(0, -".weight".length)) : undefined;
    if (layer) {
      open.delete(name.slice(0, -".weight".length));
      checkShapes(base, name, source.entry, layer);
    }
    const { dtype, shape } = source.entry;
    pieces.push({ name, shape, dtype: isFloat(dtype) ? (stored[type] ?? dtype) : dtype, source, layer });
  };
  for (const [name, source] of tensors) add(name, source);
  const tied = tensors.get(embedding);
  if (open.has("lm_head") && tied) add(head, tied);
  if (open.size > 0)
    throw new ExportError(
      "export/other-base",
      `base=${base.name} has no ${[...open.keys()].slice(0, 3).join(", no ")}, which the adapter was trained on. Name the base model of this run.`,
    );
  return pieces;
}

function checkShapes(base: BaseModel, name: string, { shape, dtype }: TensorEntry, { a, b }: AdapterLayer): void {
  if (!isFloat(dtype))
    throw new ExportError(
      "export/no-base",
      `base=${base.name} stores ${name} as ${dtype}, so nothing can be added to it. Name the unquantized model.`,
    );
  if (shape.length === 2 && shape[0] === b.shape[0] && shape[1] === a.shape[1]) return;
  throw new ExportError(
    "export/other-base",
    `base=${base.name} has ${name} of shape [${shape}], and the adapter was trained on one of [${b.shape[0]}, ${a.shape[1]}]. Name the base model of this run.`,
  );
}

/** Ranks that are added at once: what a row's sum is read and written for. */
const together = 8;

/** Adds scale · B · A to rows of a weight. */
function productOf({ file, rank, scale }: Adapter, { a, b }: AdapterLayer) {
  const columns = a.shape[1]!;
  // Widened once, and filled up with ranks of zeros.
  const padded = Math.ceil(rank / together) * together;
  const down = new Float64Array(padded * columns);
  down.set(file.readElements(a, 0, rank * columns));
  const up = file.readElements(b, 0, b.shape[0]! * rank);
  const sum = new Float64Array(columns);
  const factors = new Float64Array(padded);
  return (values: Float32Array, firstRow: number, rows: number): void => {
    for (let row = 0; row < rows; row++) {
      const start = (firstRow + row) * rank;
      factors.set(up.subarray(start, start + rank));
      sum.fill(0);
      for (let index = 0; index < padded; index += together) addRanks(sum, down, factors, index, columns);
      const target = values.subarray(row * columns, (row + 1) * columns);
      for (let column = 0; column < columns; column++) target[column] = target[column]! + scale * sum[column]!;
    }
  };
}

/** Eight ranks in one pass over the row, written out, so that sums stay in registers. */
function addRanks(sum: Float64Array, down: Float64Array, factors: Float64Array, index: number, columns: number): void {
  const [f0, f1, f2, f3] = [factors[index]!, factors[index + 1]!, factors[index + 2]!, factors[index + 3]!];
  const [f4, f5, f6, f7] = [factors[index + 4]!, factors[index + 5]!, factors[index + 6]!, factors[index + 7]!];
  const at0 = index * columns;
  const [at1, at2, at3] = [at0 + columns, at0 + 2 * columns, at0 + 3 * columns];
  const [at4, at5, at6, at7] = [at0 + 4 * columns, at0 + 5 * columns, at0 + 6 * columns, at0 + 7 * columns];
  for (let column = 0; column < columns; column++)
    sum[column] =
      sum[column]! +
      (f0 * down[at0 + column]! + f1 * down[at1 + column]!) +
      (f2 * down[at2 + column]! + f3 * down[at3 + column]!) +
      (f4 * down[at4 + column]! + f5 * down[at5 + column]!) +
      (f6 * down[at6 + column]! + f7 * down[at7 + column]!);
}

const five = (number: number) => String(number).padStart(5, "0");

function writeText(dir: string, name: string, value: unknown): void {
  writeFileSync(join(dir, name), `${JSON.stringify(value, null, 2)}\n`, { flag: "wx" });
}
