"""Makes the golden vectors of GGUF files: what llama.cpp's Python package, transformers and sentencepiece make of small ones.

    python3 -m venv /tmp/ggufenv && /tmp/ggufenv/bin/pip install gguf torch transformers safetensors sentencepiece
    /tmp/ggufenv/bin/python scripts/gguf-reference.py test/golden/gguf

blocks.gguf holds random blocks of every type and blocks.safetensors what they are; the others are random models. expected.json has the
SHA-256 of each weight as transformers reads it, and how the vocabulary of llama.gguf cuts texts.
"""

import hashlib
import io
import json
import sys
from pathlib import Path

import gguf
import numpy as np
import sentencepiece
import torch
from safetensors.numpy import save_file
from transformers import AutoModelForCausalLM

OUT = Path(sys.argv[1])
TYPES = ("F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS").split()
# Where a block's 16-bit floats are: random bytes there may be no number.
HALVES = dict(Q4_0=[0], Q4_1=[0, 2], Q5_0=[0], Q5_1=[0, 2], Q8_0=[0], Q2_K=[80, 82], Q3_K=[108], Q4_K=[0, 2], Q5_K=[0, 2], Q6_K=[208],
              IQ4_NL=[0], IQ4_XS=[0])
CONFIG = dict(hidden=32, inner=64, layers=1, heads=4, kv=2, dim=8, context=1024)
random = np.random.default_rng(1)
expected = {"weights": {}, "pieces": []}


def blocks():
    writer = gguf.GGUFWriter(OUT / "blocks.gguf", "llama")
    values = {}
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        size, width = gguf.GGML_QUANT_SIZES[kind]
        rows, columns = 2, max(256, size)
        if name in HALVES:
            data = random.integers(0, 256, (rows * columns // size, width), dtype=np.uint8)
            for at in HALVES[name]:
                data[:, at:at + 2] = random.normal(0, 0.1, (len(data), 1)).astype(np.float16).view(np.uint8)
            data = data.reshape(rows, -1)
        else:
            data = gguf.quants.quantize(random.normal(0, 1, (rows, columns)).astype(np.float32), kind)
        writer.add_tensor(name, data, raw_dtype=kind)
        values[name] = gguf.quants.dequantize(data, kind).astype(np.float32).reshape(rows, columns)
    finish(writer)
    save_file(values, OUT / "blocks.safetensors")


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def turned(weights, heads):
    """As llama.cpp's conversion stores the queries and keys of a Llama."""
    return weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def model(name, vocabulary, *, norms=False, biases=False, turn=False, head=False, scaling=None, **sizes):
    c = {**CONFIG, **sizes}
    writer = gguf.GGUFWriter(OUT / f"{name}.gguf", name)
    writer.add_context_length(c["context"])
    writer.add_embedding_length(c["hidden"])
    writer.add_block_count(c["layers"])
    writer.add_feed_forward_length(c["inner"])
    writer.add_head_count(c["heads"])
    writer.add_head_count_kv(c["kv"])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500_000.0)
    if norms:
        writer.add_key_length(c["dim"])
        writer.add_value_length(c["dim"])
    else:
        writer.add_rope_dimension_count(c["dim"])
    size = vocabulary(writer)

    def add(key, *shape, kind="F32", heads=None):
        weights = random.normal(0, 0.2, shape).astype(np.float32)
        if heads and turn:
            weights = turned(weights, heads)
        kind = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(key, gguf.quants.quantize(weights, kind), raw_dtype=kind)

    queries, keys = c["heads"] * c["dim"], c["kv"] * c["dim"]
    add("token_embd.weight", size, c["hidden"], kind="Q8_0")
    add("output_norm.weight", c["hidden"])
    if head:
        add("output.weight", size, c["hidden"], kind="F16")
    for layer in range(c["layers"]):
        block = f"blk.{layer}."
        add(block + "attn_norm.weight", c["hidden"])
        add(block + "ffn_norm.weight", c["hidden"])
        add(block + "attn_q.weight", queries, c["hidden"], kind="Q4_1", heads=c["heads"])
        add(block + "attn_k.weight", keys, c["hidden"], kind="Q5_0", heads=c["kv"])
        add(block + "attn_v.weight", keys, c["hidden"], kind="Q4_0")
        add(block + "attn_output.weight", c["hidden"], queries, kind="BF16")
        add(block + "ffn_gate.weight", c["inner"], c["hidden"], kind="Q8_0")
        add(block + "ffn_up.weight", c["inner"], c["hidden"], kind="Q8_0")
        add(block + "ffn_down.weight", c["hidden"], c["inner"], kind="Q8_0")
        if norms:
            add(block + "attn_q_norm.weight", c["dim"])
            add(block + "attn_k_norm.weight", c["dim"])
        if biases:
            add(block + "attn_q.bias", queries)
            add(block + "attn_k.bias", keys)
            add(block + "attn_v.bias", keys)
    if scaling:
        frequencies = 500_000.0 ** (-np.arange(0, c["dim"], 2) / c["dim"])
        waves = 2 * np.pi / frequencies
        smooth = np.clip((8192 / waves - 1) / 3, 0, 1)
        writer.add_tensor("rope_freqs.weight", (1 / ((1 - smooth) / scaling + smooth)).astype(np.float32))
    finish(writer)
    loaded = AutoModelForCausalLM.from_pretrained(OUT, gguf_file=f"{name}.gguf", dtype=torch.float32)
    tied = loaded.config.tie_word_embeddings or not head
    expected["weights"][name] = {key: hashlib.sha256(np.ascontiguousarray(value.numpy()).tobytes()).hexdigest()
                                 for key, value in loaded.state_dict().items() if key != "lm_head.weight" or not tied}


def bytes_and_chatml(writer):
    """One token per byte, and ChatML's control tokens."""
    spelled = [chr(b) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE else None for b in range(256)]
    others = iter(range(0x100, 0x200))
    tokens = [char or chr(next(others)) for char in spelled] + ["ab", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 257 + [3, 3, 3, 4])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(257)
    writer.add_eos_token_id(259)
    writer.add_chat_template(
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
    return len(tokens)


def trained_pieces(writer):
    """A small SentencePiece vocabulary with bytes to fall back on, as Llama 2 has one."""
    text = Path(__file__).parent.parent.joinpath("README.md").read_text().splitlines()[:60]
    saved = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_writer=saved, vocab_size=400, model_type="bpe", byte_fallback=True, character_coverage=0.99,
        normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=saved.getvalue())
    count = pieces.get_piece_size()
    kinds = [2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 6 if pieces.is_byte(i) else 1 for i in range(count)]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([pieces.id_to_piece(i) for i in range(count)])
    writer.add_token_scores([pieces.get_score(i) for i in range(count)])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(pieces.bos_id())
    writer.add_eos_token_id(pieces.eos_id())
    writer.add_unk_token_id(pieces.unk_id())
    texts = ["Whetstone trains code models.", "  two  spaces", "naïve 漢字 🙂", "def f(n):\n\treturn n + 1\n", "./whet train max_steps=3"]
    expected["pieces"] = [{"text": text, "ids": pieces.encode(text)} for text in texts]
    return count


OUT.mkdir(parents=True, exist_ok=True)
blocks()
model("llama", trained_pieces, turn=True, head=True, scaling=32.0)
model("qwen2", bytes_and_chatml, biases=True)
# transformers takes Qwen3's own 128 for a head, whatever the file says.
model("qwen3", bytes_and_chatml, norms=True, heads=2, kv=1, dim=128)
(OUT / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
