// What llama.cpp calls the weights of a model, and how it permutes those of queries and keys.
import type { GgufFile, GgufTensor } from "./file.ts";

const outer: Readonly<Record<string, string>> = {
  "model.embed_tokens.weight": "token_embd.weight",
  "model.norm.weight": "output_norm.weight",
  "lm_head.weight": "output.weight",
};

const parts: Readonly<Record<string, string>> = {
  input_layernorm: "attn_norm",
  post_attention_layernorm: "ffn_norm",
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.o_proj": "attn_output",
  "self_attn.q_norm": "attn_q_norm",
  "self_attn.k_norm": "attn_k_norm",
  "mlp.gate_proj": "ffn_gate",
  "mlp.up_proj": "ffn_up",
  "mlp.down_proj": "ffn_down",
};

/** The tensor of a weight under its Hugging Face name. */
export function tensorOf(file: GgufFile, name: string): GgufTensor | undefined {
  const [, layer, part, kind] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(name) ?? [];
  const stored = layer === undefined ? outer[name] : parts[part!] && `blk.${layer}.${parts[part!]}.${kind}`;
  return stored === undefined ? undefined : file.tensors.get(stored);
}

/** A weight as Hugging Face has it. `into`: an array of its size to put it in. */
export function readWeight(file: GgufFile, name: string, into?: Float32Array): Float32Array | undefined {
  const tensor = tensorOf(file, name);
  if (!tensor) return undefined;
  const data = file.readFloat32(tensor, into);
  const projection = /\.self_attn\.([qk])_proj\./.exec(name)?.[1];
  if (projection && isPermuted(file)) unpermute(data, tensor.shape, headCount(file, projection === "q" ? "" : "_kv"));
  return data;
}

/** A Llama's heads have the rows of their two halves, which rotary positions rotate as pairs, interleaved. */
const isPermuted = ({ metadata }: GgufFile) =>
  ["llama", "mistral"].includes(String(metadata.get("general.architecture")));

const headCount = ({ metadata }: GgufFile, suffix: string) =>
  Number(metadata.get(`${String(metadata.get("general.architecture"))}.attention.head_count${suffix}`));

function unpermute(data: Float32Array, shape: readonly number[], heads: number): void {
  const width = data.length / shape[0]!;
  const half = shape[0]! / heads / 2;
  const stored = data.slice();
  for (let row = 0; row < shape[0]!; row++) {
    const [head, within] = [Math.floor(row / (2 * half)), row % (2 * half)];
    const from = head * 2 * half + 2 * (within % half) + Math.floor(within / half);
    data.set(stored.subarray(from * width, (from + 1) * width), row * width);
  }
}
