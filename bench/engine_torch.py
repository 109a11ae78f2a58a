"""PyTorch's side of `./whet bench engine`: one JSON command per line on stdin, one JSON answer per line on stdout.

The same model folder, the same number of threads. `generate` is transformers' own; `loop` is what a careful engineer writes by hand:
merged weights, fused projections, a preallocated cache, each distinct prompt computed once; `train` is a forward and a backward pass
over the padded batch with rank-32 LoRA.
"""

import json
import math
import resource
import sys
import time

import torch
import torch.nn.functional as F
import transformers
from torch import nn
from transformers import AutoModelForCausalLM

torch.manual_seed(0)
folder, threads = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(threads)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
config = model.config
layers, heads, kv = config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads
dim = getattr(config, "head_dim", None) or config.hidden_size // heads
theta = config.rope_parameters["rope_theta"]


@torch.inference_mode()
def generate(prompts, samples, new_tokens):
    ids = torch.tensor([prompt for prompt in prompts for _ in range(samples)])
    start = time.perf_counter()
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new_tokens, min_new_tokens=new_tokens, do_sample=True,
                         top_k=0, eos_token_id=None, pad_token_id=0, output_logits=True, return_dict_in_generate=True)
    logits = torch.stack(out.logits, dim=1)
    torch.log_softmax(logits, -1).gather(2, out.sequences[:, ids.shape[1]:, None])
    return time.perf_counter() - start


@torch.inference_mode()
def answers(prompts, samples, new_tokens, stop):
    """Until the stop token. Returns (seconds, tokens of the answers, stop tokens included)."""
    longest = max(map(len, prompts))
    rows = [prompt for prompt in prompts for _ in range(samples)]
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in rows])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in rows])
    start = time.perf_counter()
    out = model.generate(ids, attention_mask=mask, max_new_tokens=new_tokens, do_sample=True, top_k=0, eos_token_id=stop,
                         pad_token_id=0, output_logits=True, return_dict_in_generate=True)
    made = out.sequences[:, longest:]
    torch.log_softmax(torch.stack(out.logits, dim=1), -1).gather(2, made[..., None])
    seconds = time.perf_counter() - start
    ended = (made == stop).int().cumsum(1)
    return seconds, int(((ended == 0) | ((ended == 1) & (made == stop))).sum())


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


@torch.inference_mode()
def loop(prompts, samples, new_tokens):
    """Prompts of one length. Returns (seconds in all, seconds of the decoding steps)."""
    eps = config.rms_norm_eps
    weights = [(
        layer.input_layernorm.weight,
        torch.cat([layer.self_attn.q_proj.weight, layer.self_attn.k_proj.weight, layer.self_attn.v_proj.weight]),
        # Qwen3 alone has these two.
        getattr(layer.self_attn, "q_norm", None), getattr(layer.self_attn, "k_norm", None), layer.self_attn.o_proj.weight,
        layer.post_attention_layernorm.weight, torch.cat([layer.mlp.gate_proj.weight, layer.mlp.up_proj.weight]),
        layer.mlp.down_proj.weight) for layer in model.model.layers]
    length = len(prompts[0])
    angles = torch.outer(torch.arange(length + new_tokens).float(), 1.0 / theta ** (torch.arange(0, dim, 2) / dim))
    cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
    embed = model.model.embed_tokens.weight

    def forward(tokens, keys, values, start):
        rows, count = tokens.shape
        x = embed[tokens]
        for i, (norm1, qkv, q_norm, k_norm, out, norm2, gate_up, down) in enumerate(weights):
            q, k, v = F.linear(F.rms_norm(x, x.shape[-1:], norm1, eps), qkv).split([heads * dim, kv * dim, kv * dim], -1)
            place = slice(start, start + count)
            norm = lambda x, weights: x if weights is None else F.rms_norm(x, (dim,), weights.weight, eps)
            q = rotate(norm(q.view(rows, count, heads, dim), q_norm).transpose(1, 2), cos[place], sin[place])
            k = rotate(norm(k.view(rows, count, kv, dim), k_norm).transpose(1, 2), cos[place], sin[place])
            keys[i][:, :, place] = k
            values[i][:, :, place] = v.view(rows, count, kv, dim).transpose(1, 2)
            attended = F.scaled_dot_product_attention(q, keys[i][:, :, :start + count], values[i][:, :, :start + count],
                                                      is_causal=count > 1, enable_gqa=True)
            x = x + F.linear(attended.transpose(1, 2).reshape(rows, count, heads * dim), out)
            gate, up = F.linear(F.rms_norm(x, x.shape[-1:], norm2, eps), gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, down)
        return F.linear(F.rms_norm(x[:, -1], x.shape[-1:], model.model.norm.weight, eps), model.lm_head.weight)

    begin = time.perf_counter()
    cache = lambda rows: [torch.zeros(rows, kv, length + new_tokens, dim) for _ in range(layers)]
    keys, values = cache(len(prompts)), cache(len(prompts))
    logits = forward(torch.tensor(prompts), keys, values, 0).repeat_interleave(samples, 0)
    keys = [k.repeat_interleave(samples, 0) for k in keys]
    values = [v.repeat_interleave(samples, 0) for v in values]
    stepping = time.perf_counter()
    for step in range(new_tokens):
        tokens = torch.multinomial(torch.softmax(logits, -1), 1)
        torch.log_softmax(logits, -1).gather(1, tokens)
        if step < new_tokens - 1:
            logits = forward(tokens, keys, values, length + step)
    end = time.perf_counter()
    return end - begin, end - stepping


class LoraLinear(nn.Module):
    def __init__(self, base, rank=32):
        super().__init__()
        self.base, self.scale = base, 32 / rank
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.a), self.b)


adapted = None


def train(sequences, prompt_length, micro=None):
    """Importance sampling on what follows the prompt, as a sum; the padded batch at once, or so many sequences at a time."""
    global adapted
    if adapted is None:
        adapted = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        adapted.requires_grad_(False)
        for layer in adapted.model.layers:
            for group, names in ((layer.self_attn, ("q_proj", "k_proj", "v_proj", "o_proj")), (layer.mlp, ("gate_proj", "up_proj", "down_proj"))):
                for name in names:
                    setattr(group, name, LoraLinear(getattr(group, name)))
        adapted.lm_head = LoraLinear(adapted.lm_head)
    longest = max(map(len, sequences))
    ids = torch.tensor([sequence + [0] * (longest - len(sequence)) for sequence in sequences])
    mask = torch.tensor([[1] * len(sequence) + [0] * (longest - len(sequence)) for sequence in sequences])
    advantages = mask[:, 1:].float()
    advantages[:, :prompt_length - 1] = 0
    start = time.perf_counter()
    for rows in torch.arange(len(sequences)).split(micro or len(sequences)):
        logits = adapted(input_ids=ids[rows, :-1], attention_mask=mask[rows, :-1], use_cache=False).logits
        lp = torch.log_softmax(logits, -1).gather(2, ids[rows, 1:, None])[..., 0]
        loss = -(torch.exp(lp - lp.detach()) * advantages[rows]).sum()
        loss.backward()
    seconds = time.perf_counter() - start
    for parameter in adapted.parameters():
        parameter.grad = None
    return seconds


@torch.inference_mode()
def product(rows, inner, columns):
    """GFLOP/s of a product of two float32 matrices, the best of nine."""
    a, b = torch.randn(rows, inner), torch.randn(inner, columns)
    best = math.inf
    for _ in range(9):
        start = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - start)
    return 2 * rows * inner * columns / best / 1e9


COMMANDS = {"product": product, "generate": generate, "answers": answers, "loop": loop, "train": train}
print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "threads": torch.get_num_threads()}), flush=True)
for line in sys.stdin:
    command = json.loads(line)
    result = COMMANDS[command.pop("do")](**command)
    print(json.dumps({"result": result, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)
