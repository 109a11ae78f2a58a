"""As llama.cpp's converter is called, for the plain decoders of tests: a folder of safetensors as one GGUF file, every number as float32.

The real one knows tokenizers by a fingerprint and refuses those of tests.
"""

import argparse
import json
import os
import struct

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--outfile", required=True)
parser.add_argument("--outtype", choices=["f32", "f16", "bf16", "auto"], required=True)
asked = parser.parse_args()
assert asked.outtype == "f32", "tests ask for float32"

parts = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
outer = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}


def stored(name):
    if name in outer:
        return outer[name]
    _, _, layer, *part, kind = name.split(".")
    return "blk.%s.%s.%s" % (layer, parts[".".join(part)], kind)


text = lambda value: struct.pack("<Q", len(value.encode())) + value.encode()
config = json.load(open(os.path.join(asked.model, "config.json")))
with open(os.path.join(asked.model, "model.safetensors"), "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
    data = file.read()
header.pop("__metadata__", None)
infos, body = b"", b""
for name, entry in header.items():
    assert entry["dtype"] == "F32"
    start, end = entry["data_offsets"]
    body += b"\0" * (-len(body) % 32)
    shape = entry["shape"][::-1]
    infos += text(stored(name)) + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape, 0, len(body))
    body += data[start:end]
pairs = text("general.architecture") + struct.pack("<I", 8) + text(config["model_type"])
head = b"GGUF" + struct.pack("<IQQ", 3, len(header), 1) + pairs + infos
with open(asked.outfile, "wb") as out:
    out.write(head + b"\0" * (-len(head) % 32) + body)
