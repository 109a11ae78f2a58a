"""Qwen3 as functions of a dictionary of weights under their Hugging Face names, with adapters on every linear layer.

One `forward` serves pre-training, reinforcement and sampling; sampling keeps a key/value cache.
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": None,
    "eos_token_id": None,
    "head_dim": 32,
    "hidden_act": "silu",
    "hidden_size": 192,
    "initializer_range": 0.02,
    "intermediate_size": 640,
    "max_position_embeddings": 1024,
    "num_attention_heads": 6,
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "sliding_window": None,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 1024,
}
Weights = dict[str, torch.Tensor]


def linear_shapes(config: dict) -> dict[str, tuple[int, int]]:
    hidden, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    shapes = {}
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        shapes |= {
            name + "self_attn.q_proj.weight": (queries, hidden),
            name + "self_attn.k_proj.weight": (keys, hidden),
            name + "self_attn.v_proj.weight": (keys, hidden),
            name + "self_attn.o_proj.weight": (hidden, queries),
            name + "mlp.gate_proj.weight": (inner, hidden),
            name + "mlp.up_proj.weight": (inner, hidden),
            name + "mlp.down_proj.weight": (hidden, inner),
        }
    return shapes


def new_weights(config: dict, device: str, seed: int) -> Weights:
    generator = torch.Generator().manual_seed(seed)
    hidden, head, layers = config["hidden_size"], config["head_dim"], config["num_hidden_layers"]
    weights = {"model.embed_tokens.weight": torch.randn(config["vocab_size"], hidden, generator=generator) * 0.02}
    for name, (rows, columns) in linear_shapes(config).items():
        scale = (
            0.02 / math.sqrt(2 * layers)
            if name.endswith(("o_proj.weight", "down_proj.weight"))
            else 1 / math.sqrt(columns)
        )
        weights[name] = torch.randn(rows, columns, generator=generator) * scale
    for layer in range(layers):
        name = f"model.layers.{layer}."
        weights |= {
            name + key: torch.ones(hidden) for key in ("input_layernorm.weight", "post_attention_layernorm.weight")
        }
        weights |= {name + key: torch.ones(head) for key in ("self_attn.q_norm.weight", "self_attn.k_norm.weight")}
    weights["model.norm.weight"] = torch.ones(hidden)
    return {name: tensor.to(device) for name, tensor in weights.items()}


def new_adapter(config: dict, rank: int, device: str, seed: int) -> Weights:
    """A and B of every linear layer and of the unembedding; B is zero, so the adapter starts as no change."""
    generator = torch.Generator().manual_seed(seed)
    adapter = {}
    for name, (rows, columns) in (
        linear_shapes(config) | {"lm_head.weight": (config["vocab_size"], config["hidden_size"])}
    ).items():
        bound = 1 / math.sqrt(columns)
        adapter[name + ".A"] = (torch.rand(rank, columns, generator=generator) * 2 - 1) * bound
        adapter[name + ".B"] = torch.zeros(rows, rank)
    return {name: tensor.to(device).requires_grad_() for name, tensor in adapter.items()}


def adapted(weights: Weights, adapter: Weights) -> Weights:
    """Weights with the adapter added (alpha / rank = 1)."""
    result = dict(weights) | {"lm_head.weight": weights["model.embed_tokens.weight"]}
    for name in adapter:
        if name.endswith(".A"):
            base = name[:-2]
            result[base] = result[base] + adapter[base + ".B"] @ adapter[name]
    return result


def norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * weight.to(x.dtype)


def rotation(config: dict, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    half = config["head_dim"] // 2
    frequencies = config["rope_theta"] ** (-torch.arange(half, device=positions.device).float() / half)
    angles = positions.float()[..., None] * frequencies
    angles = torch.cat((angles, angles), -1)[:, None]
    return angles.cos(), angles.sin()


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return (x * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)


def forward(
    config: dict,
    weights: Weights,
    tokens: torch.Tensor,
    positions: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
    cache: list | None = None,
    at: int = 0,
) -> torch.Tensor:
    """Final hidden states [batch, time, hidden]. With a cache, keys and values are written at column `at`."""
    batch, time = tokens.shape
    eps, head = config["rms_norm_eps"], config["head_dim"]
    if positions is None:
        positions = torch.arange(time, device=tokens.device)[None]
    cos, sin = rotation(config, positions)
    x = F.embedding(tokens, weights["model.embed_tokens.weight"])
    if torch.is_autocast_enabled():
        x = x.to(torch.bfloat16)
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}."

        def project(value, key, name=name):
            return F.linear(value, weights[name + key + ".weight"])

        y = norm(x, weights[name + "input_layernorm.weight"], eps)
        q, k, v = (
            project(y, f"self_attn.{which}_proj").view(batch, time, -1, head).transpose(1, 2)
            for which in ("q", "k", "v")
        )
        q = rotate(norm(q, weights[name + "self_attn.q_norm.weight"], eps), cos, sin)
        k = rotate(norm(k, weights[name + "self_attn.k_norm.weight"], eps), cos, sin)
        if cache is not None:
            keys, values = cache[layer]
            keys[:, :, at : at + time] = k
            values[:, :, at : at + time] = v
            k, v = keys[:, :, : at + time], values[:, :, : at + time]
        repeat = config["num_attention_heads"] // config["num_key_value_heads"]
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        y = F.scaled_dot_product_attention(q, k.to(q.dtype), v.to(q.dtype), attn_mask=mask, is_causal=mask is None)
        x = x + project(y.transpose(1, 2).reshape(batch, time, -1), "self_attn.o_proj")
        y = norm(x, weights[name + "post_attention_layernorm.weight"], eps)
        x = x + project(F.silu(project(y, "mlp.gate_proj")) * project(y, "mlp.up_proj"), "mlp.down_proj")
    return norm(x, weights["model.norm.weight"], eps)


def logits(weights: Weights, hidden: torch.Tensor) -> torch.Tensor:
    return F.linear(hidden, weights.get("lm_head.weight", weights["model.embed_tokens.weight"])).float()


@torch.no_grad()
def sample(
    config: dict,
    weights: Weights,
    prompts: list[list[int]],
    limit: int,
    stop: int,
    temperature: float,
    generator: torch.Generator | None,
) -> list[tuple[list[int], list[float]]]:
    """One completion per prompt: its tokens (the stop token included) and their logprobs. Temperature 0 is greedy."""
    device = weights["model.norm.weight"].device
    batch, longest = len(prompts), max(map(len, prompts))
    pads = torch.tensor([longest - len(prompt) for prompt in prompts], device=device)
    tokens = torch.tensor([[stop] * (longest - len(prompt)) + prompt for prompt in prompts], device=device)
    columns = torch.arange(longest + limit, device=device)
    shape = (batch, config["num_key_value_heads"], longest + limit, config["head_dim"])
    cache = [
        (torch.zeros(shape, device=device), torch.zeros(shape, device=device))
        for _ in range(config["num_hidden_layers"])
    ]
    seen = (columns[None] >= pads[:, None])[:, None, None]
    causal = (columns[None, :longest] <= columns[:longest, None])[None, None] & seen[..., :longest]
    causal = causal | torch.eye(longest, dtype=torch.bool, device=device)
    hidden = forward(config, weights, tokens, (columns[None, :longest] - pads[:, None]).clamp(min=0), causal, cache, 0)[
        :, -1
    ]
    drawn, scores = [], []
    done = torch.zeros(batch, dtype=torch.bool, device=device)
    for step in range(limit):
        table = logits(weights, hidden).log_softmax(-1)
        if temperature == 0:
            token = table.argmax(-1)
        else:
            token = torch.multinomial((table / temperature).softmax(-1), 1, generator=generator)[:, 0]
        drawn.append(token)
        scores.append(table.gather(-1, token[:, None])[:, 0])
        done |= token == stop
        if step == limit - 1 or step % 8 == 7 and bool(done.all()):
            break
        at = longest + step
        hidden = forward(config, weights, token[:, None], (at - pads)[:, None], seen[..., : at + 1], cache, at)[:, -1]
    rows, values = torch.stack(drawn, 1).tolist(), torch.stack(scores, 1).tolist()
    result = []
    for row, value in zip(rows, values, strict=True):
        end = row.index(stop) + 1 if stop in row else len(row)
        result.append((row[:end], value[:end]))
    return result


def save(folder: pathlib.Path, config: dict, weights: Weights) -> None:
    save_file(
        {name: tensor.to(torch.bfloat16).cpu().contiguous() for name, tensor in weights.items()},
        folder / "model.safetensors",
        {"format": "pt"},
    )
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def load(folder: pathlib.Path, device: str) -> tuple[dict, Weights]:
    config = json.loads((folder / "config.json").read_text())
    return config, {name: tensor.float().to(device) for name, tensor in load_file(folder / "model.safetensors").items()}
