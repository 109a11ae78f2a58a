"""Makes the golden vectors of the embedded engine with PyTorch and transformers.

    python3 -m venv /tmp/torchenv && /tmp/torchenv/bin/pip install torch transformers safetensors numpy gguf accelerate
    /tmp/torchenv/bin/python scripts/engine-reference.py test/golden/engine [MODEL …]
    /tmp/torchenv/bin/python scripts/engine-reference.py OUT FILE.gguf        a real model, for scripts/engine-parity.ts OUT/FILE

Each model is a Hugging Face folder with random weights (stored as bf16, f16 and sharded f32), an adapter in PEFT's layout, and
reference.json + reference.safetensors: what PyTorch computes from them. Logits and greedy tokens are float32; losses, gradients
and Adam steps are float64 autograd, rounded once when stored.
"""

import json
import math
import platform
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

ALPHA = 32
PROMPTS = (
    "Write a Python function that returns the sum of a list of numbers.\n\ndef total(numbers):\n",
    "Question: what is the capital of France?\nAnswer:",
    "The quick brown fox jumps over the lazy dog. Then",
    "# Print the numbers from 1 to n, one a line.\nn = int(input())\n",
    "def is_even(n):\n    return",
)
RL_LOSSES = ("importance_sampling", "ppo", "cispo", "dro")

MODELS = {
    # 2 query heads per key/value head, head_dim is not hidden/heads, tied head without an adapter on it.
    "grouped": dict(
        seed=1, dtype=torch.bfloat16, shards=1, rank=4, targets=("attn", "mlp"),
        config=dict(hidden_size=40, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                    head_dim=16, vocab_size=80, tie_word_embeddings=True, rope_theta=1_000_000.0),
    ),
    # one query head per key/value head, untied head with an adapter.
    "untied": dict(
        seed=2, dtype=torch.float16, shards=1, rank=8, targets=("attn", "mlp", "unembed"),
        config=dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=2,
                    head_dim=16, vocab_size=64, tie_word_embeddings=False, rope_theta=10_000.0),
    ),
    # one key/value head for all six query heads, tied head with an adapter, weights in two files.
    "multiquery": dict(
        seed=3, dtype=torch.float32, shards=2, rank=2, targets=("attn", "mlp", "unembed"),
        config=dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=1,
                    head_dim=8, vocab_size=96, tie_word_embeddings=True, rope_theta=500_000.0),
    ),
    # biases on queries, keys and values.
    "qwen2": dict(
        seed=4, architecture="qwen2", dtype=torch.float32, shards=1, rank=2, targets=("attn", "mlp"),
        config=dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                    vocab_size=64, tie_word_embeddings=True, rope_theta=1_000_000.0),
    ),
    # Llama 2: plain rope, untied.
    "llama2": dict(
        seed=5, architecture="llama", dtype=torch.float32, shards=1, rank=2, targets=("attn", "mlp", "unembed"),
        config=dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3,
                    vocab_size=64, tie_word_embeddings=False, rope_theta=10_000.0),
    ),
    # Llama 3: positions scaled so that kept, mixed and stretched waves are all there.
    "llama3": dict(
        seed=6, architecture="llama", dtype=torch.bfloat16, shards=1, rank=2, targets=("attn", "mlp"),
        config=dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                    head_dim=16, vocab_size=64, tie_word_embeddings=True, rope_theta=10_000.0),
        rope=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                  original_max_position_embeddings=64),
    ),
    # SmolLM2: the proportions of the 135M model, nine heads on three.
    "smollm2": dict(
        seed=7, architecture="llama", dtype=torch.bfloat16, shards=1, rank=2, targets=("attn", "mlp"),
        config=dict(hidden_size=36, intermediate_size=96, num_hidden_layers=3, num_attention_heads=9, num_key_value_heads=3,
                    vocab_size=64, tie_word_embeddings=True, rope_theta=100_000.0, rms_norm_eps=1e-5),
    ),
    # Mistral, and positions scaled evenly.
    "mistral": dict(
        seed=8, architecture="mistral", dtype=torch.float32, shards=1, rank=2, targets=("attn", "mlp"),
        config=dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                    head_dim=12, vocab_size=64, tie_word_embeddings=False, rope_theta=10_000.0, sliding_window=384),
        rope=dict(rope_type="linear", factor=4.0),
    ),
}

LINEARS = {
    "attn": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    "mlp": ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
}


class LoraLinear(nn.Module):
    """y = W x + alpha/rank * B (A x), the base frozen."""

    def __init__(self, base: nn.Linear, rank: int, generator: torch.Generator, b_scale: float):
        super().__init__()
        self.base = base
        self.scale = ALPHA / rank
        self.a = nn.Parameter(torch.randn(rank, base.in_features, generator=generator) / math.sqrt(base.in_features))
        self.b = nn.Parameter(torch.randn(base.out_features, rank, generator=generator) * b_scale)

    def forward(self, x):
        return self.base(x) + self.scale * nn.functional.linear(nn.functional.linear(x, self.a), self.b)


def config_of(spec):
    """The fields of config.json that this model sets."""
    config = dict(spec["config"])
    theta = config.pop("rope_theta")
    rope = dict(spec.get("rope", dict(rope_type="default")), rope_theta=theta)
    defaults = dict(rms_norm_eps=1e-6, hidden_act="silu", attention_dropout=0.0, max_position_embeddings=512)
    return {**defaults, **config, "rope_parameters": rope}


def read_model(path):
    """A GGUF file as transformers reads it, with the spec that a random model has."""
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager").eval()
    names = ("hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim vocab_size tie_word_embeddings "
             "rms_norm_eps max_position_embeddings").split()
    config = {name: value for name in names if (value := getattr(model.config, name, None)) is not None}
    config["rope_theta"] = model.config.rope_parameters["rope_theta"]
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    # An adapter as large as the weights would leave nothing of what the model learned.
    spec = dict(seed=9, dtype=torch.float32, shards=1, rank=4, b_scale=0.002, targets=("attn", "mlp"), config=config, adam_steps=3, gguf=str(path))
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    spec["prompts"] = [tokenizer(text).input_ids for text in PROMPTS]
    return spec, model


def make_model(spec):
    full = AutoConfig.for_model(spec.get("architecture", "qwen3"), **config_of(spec))
    full._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(full).eval()
    assert model.dtype == torch.float32
    generator = torch.Generator().manual_seed(spec["seed"])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name == "model.norm.weight":
                value = 4 + noise  # spreads the logits
            elif name.endswith("norm.weight"):
                value = 1 + 0.1 * noise
            elif name.endswith(".bias"):
                value = noise * 0.3
            elif "embed_tokens" in name:
                value = noise * 0.15  # small against what the layers add, or a tied model only repeats its input
            else:
                value = noise / math.sqrt(parameter.shape[1])
            parameter.copy_(value.to(spec["dtype"]).float())  # what the file can hold is what is computed with
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model, generator


def add_adapter(model, spec, generator):
    """Wraps the target layers; returns the trainable parameters under PEFT's names."""
    adapter = {}

    def wrap(parent, child, path):
        layer = LoraLinear(getattr(parent, child), spec["rank"], generator, spec.get("b_scale", 0.02))
        setattr(parent, child, layer)
        adapter[f"base_model.model.{path}.lora_A.weight"] = layer.a
        adapter[f"base_model.model.{path}.lora_B.weight"] = layer.b

    for index, layer in enumerate(model.model.layers):
        for target in ("attn", "mlp"):
            for path in LINEARS[target] if target in spec["targets"] else ():
                group, child = path.split(".")
                wrap(getattr(layer, group), child, f"model.layers.{index}.{path}")
    if "unembed" in spec["targets"]:
        wrap(model, "lm_head", "lm_head")
    return adapter


def save_hf_folder(model, spec, folder):
    tensors = {name: value.detach().to(spec["dtype"]).clone() for name, value in model.state_dict().items()
               if not (spec["config"]["tie_word_embeddings"] and name == "lm_head.weight")}
    config = dict(architectures=[type(model).__name__], model_type=model.config.model_type,
                  torch_dtype=str(spec["dtype"]).removeprefix("torch."), **config_of(spec))
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    if spec["shards"] == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(tensors)
    weight_map = {}
    for shard in range(spec["shards"]):
        file = f"model-{shard + 1:05d}-of-{spec['shards']:05d}.safetensors"
        part = names[shard::spec["shards"]]
        save_file({name: tensors[name] for name in part}, folder / file, metadata={"format": "pt"})
        weight_map.update({name: file for name in part})
    total = sum(value.numel() * value.element_size() for value in tensors.values())
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=1) + "\n")


def make_sequences(vocab, generator):
    """Lengths from 2 to 40; the last four share their first nine tokens, as one problem's completions do."""
    def ints(count):
        return torch.randint(0, vocab, (count,), generator=generator).tolist()
    prompt = ints(9)
    return [ints(2), ints(17), ints(40), ints(5), prompt + ints(4), prompt + ints(12), prompt + ints(1), prompt + ints(7)]


def own_answers(model, prompts):
    """What a real model is trained on: its own answers, the last four to one problem."""
    return [model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), max_new_tokens=24, min_new_tokens=8,
                           do_sample=True, temperature=1.0, top_k=0, pad_token_id=0)[0].tolist() for prompt in prompts + prompts[-1:] * 3]


def logprobs_of(model, tokens):
    """Log-probabilities of every next token, [position, vocab]."""
    return torch.log_softmax(model(torch.tensor([tokens])).logits[0], dim=-1)


def token_logprobs(model, sequence):
    return logprobs_of(model, sequence[:-1]).gather(1, torch.tensor(sequence[1:])[:, None])[:, 0]


def loss_of(name, lp, inputs, config):
    if name == "cross_entropy":
        return -(inputs["weights"] * lp).sum()
    q, advantages = inputs["logprobs"], inputs["advantages"]
    ratio = torch.exp(lp - q)
    if name == "importance_sampling":
        return -(ratio * advantages).sum()
    if name == "dro":
        return -(lp * advantages - 0.5 * config["beta"] * (lp - q) ** 2).sum()
    clipped = torch.clamp(ratio, config["clip_low_threshold"], config["clip_high_threshold"])
    if name == "ppo":
        return -torch.minimum(ratio * advantages, clipped * advantages).sum()
    if name == "cispo":
        return -(clipped.detach() * lp * advantages).sum()
    raise ValueError(name)


def soft_backward(model, sequences, data):
    total = 0.0
    for sequence, inputs in zip(sequences, data):
        value = -(inputs["soft_weights"] * logprobs_of(model, sequence[:-1]).gather(1, inputs["soft_targets"])).sum()
        value.backward()
        total += value.item()
    return total


CONFIGS = {
    "cross_entropy": {}, "importance_sampling": {}, "ppo": {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2},
    "cispo": {"clip_low_threshold": 0.0, "clip_high_threshold": 1.1}, "dro": {"beta": 0.05},
}

ADAM = {
    "plain": dict(learning_rate=1e-3, beta1=0.9, beta2=0.95, epsilon=1e-12, weight_decay=0.0, grad_clip_norm=0.0),
    "decay_and_clip": dict(learning_rate=3e-4, beta1=0.8, beta2=0.99, epsilon=1e-8, weight_decay=0.1, grad_clip_norm=0.5),
}


def zero_grad(adapter):
    for parameter in adapter.values():
        parameter.grad = None


def reset(adapter, start):
    with torch.no_grad():
        for key, parameter in adapter.items():
            parameter.copy_(start[key])


def worst(found, tensors, prefix):
    """The largest relative difference of a tensor from the reference."""
    return max(((value.detach() - tensors[prefix + key]).norm() / tensors[prefix + key].norm()).item() for key, value in found.items())


def take_steps(model, adapter, start, settings, steps, sequences, data):
    """AdamW from the beginning; the norm of each step's gradient."""
    reset(adapter, start)
    optimizer = torch.optim.AdamW(adapter.values(), lr=settings["learning_rate"], betas=(settings["beta1"], settings["beta2"]),
                                  eps=settings["epsilon"], weight_decay=settings["weight_decay"])
    norms = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = "cross_entropy" if step % 2 == 0 else "importance_sampling"
        for sequence, inputs in zip(sequences, data):
            loss_of(loss, token_logprobs(model, sequence), inputs, {}).backward()
        norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in adapter.values()]).item()
        norms.append(norm)
        if settings["grad_clip_norm"] > 0 and norm > settings["grad_clip_norm"]:
            for parameter in adapter.values():
                parameter.grad.mul_(settings["grad_clip_norm"] / norm)
        optimizer.step()
    return norms


def reference_for(name, spec, folder, model=None):
    generator = torch.Generator().manual_seed(spec["seed"])
    if model is None:
        model, generator = make_model(spec)
    save_hf_folder(model, spec, folder)
    adapter = add_adapter(model, spec, generator)
    save_file({key: value.detach().clone() for key, value in adapter.items()}, folder / "adapter_model.safetensors",
              metadata={"format": "pt"})
    (folder / "adapter_config.json").write_text(json.dumps(dict(
        peft_type="LORA", task_type="CAUSAL_LM", r=spec["rank"], lora_alpha=ALPHA, lora_dropout=0.0, bias="none",
        target_modules=sorted({key.split(".")[-3] for key in adapter})), indent=1) + "\n")

    sequences = own_answers(model, spec["prompts"]) if "prompts" in spec else make_sequences(spec["config"]["vocab_size"], generator)
    tensors, facts = {}, {}

    # float32: logits with the adapter, and 200 greedy tokens.
    with torch.no_grad():
        for index, sequence in enumerate(sequences):
            tensors[f"logits.{index}"] = model(torch.tensor([sequence[:-1]])).logits[0].clone()
        tokens = sequences[3][:4]
        generated = model.generate(torch.tensor([tokens]), attention_mask=torch.ones(1, len(tokens), dtype=torch.long),
                                   max_new_tokens=200, do_sample=False, eos_token_id=None, pad_token_id=0)
        greedy = generated[0, len(tokens):].tolist()

    model.double()
    with torch.no_grad():
        # The margin shows that float32 and float64 must agree on every one of the 200 tokens.
        top = logprobs_of(model, tokens + greedy)[len(tokens) - 1:-1].topk(2, dim=-1)
        margins = top.values[:, 0] - top.values[:, 1]
        if "gguf" in spec:  # a real model's near ties cannot be chosen away
            sure = int((margins > 1e-3).int().cumprod(0).sum())
            greedy, margins, top = greedy[:sure], margins[:sure], torch.return_types.topk((top.values[:sure], top.indices[:sure]))
        margin = margins.min().item()
        assert top.indices[:, 0].tolist() == greedy and margin > 1e-3, f"{name}: a near tie ({margin:.1e}); choose another seed"

    data = []
    for sequence in sequences:
        with torch.no_grad():
            lp = token_logprobs(model, sequence)
        count = len(lp)
        advantages = torch.randn(count, generator=generator).double()
        if count > 9:
            advantages[:8] = 0  # a prompt carries no advantage
        noise = torch.randn(count, generator=generator).double() * 0.3
        data.append(dict(weights=torch.randn(count, generator=generator).double().float().double(),
                         logprobs=(lp + noise).float().double(), advantages=advantages.float().double()))

    losses = {}
    for loss, config in CONFIGS.items():
        zero_grad(adapter)
        total = 0.0
        for index, (sequence, inputs) in enumerate(zip(sequences, data)):
            lp = token_logprobs(model, sequence)
            value = loss_of(loss, lp, inputs, config)
            value.backward()
            total += value.item()
            tensors[f"logprobs.{index}"] = lp.detach().float()
        losses[loss] = dict(config=config, loss_sum=total)
        for key, parameter in adapter.items():
            tensors[f"grad.{loss}.{key}"] = parameter.grad.float().clone()

    # Soft targets: K weighted targets per position.
    k = 3
    for index, sequence in enumerate(sequences):
        count = len(sequence) - 1
        targets = torch.randint(0, spec["config"]["vocab_size"], (count, k), generator=generator)
        weights = torch.rand(count, k, generator=generator).double().float().double()
        data[index] |= dict(soft_targets=targets, soft_weights=weights)
        tensors[f"soft.targets.{index}"] = targets.float()  # token ids are exact in float32
        tensors[f"soft.weights.{index}"] = weights.float()
    zero_grad(adapter)
    losses["cross_entropy_soft"] = dict(config={}, loss_sum=soft_backward(model, sequences, data))
    for key, parameter in adapter.items():
        tensors[f"grad.cross_entropy_soft.{key}"] = parameter.grad.float().clone()

    start = {key: value.detach().clone() for key, value in adapter.items()}
    adam_facts, adam_steps = {}, spec.get("adam_steps", 20)
    for variant, settings in ADAM.items():
        norms = take_steps(model, adapter, start, settings, adam_steps, sequences, data)
        adam_facts[variant] = dict(**settings, grad_norms=norms)
        for key, parameter in adapter.items():
            tensors[f"adam.{variant}.{key}"] = parameter.detach().float().clone()

    if "gguf" in spec:  # a deep model in float32 is further from float64, PyTorch's too: how far, and where it is
        nn.Module.float(model)  # transformers refuses it for what was a GGUF file
        start = {key: value.float() for key, value in start.items()}
        data32 = [{key: value if key == "soft_targets" else value.float() for key, value in inputs.items()} for inputs in data]
        reset(adapter, start)
        for loss in losses:
            zero_grad(adapter)
            if loss == "cross_entropy_soft":
                soft_backward(model, sequences, data32)
            else:
                for sequence, inputs in zip(sequences, data32):
                    loss_of(loss, token_logprobs(model, sequence), inputs, CONFIGS[loss]).backward()
            losses[loss]["float32"] = worst({key: value.grad for key, value in adapter.items()}, tensors, f"grad.{loss}.")
            for key, parameter in adapter.items():
                tensors[f"grad32.{loss}.{key}"] = parameter.grad.clone()
        for variant, settings in ADAM.items():
            take_steps(model, adapter, start, settings, adam_steps, sequences, data32)
            adam_facts[variant]["float32"] = worst(adapter, tensors, f"adam.{variant}.")

    for index, inputs in enumerate(data):
        for key, value in inputs.items():
            if key.startswith("soft_"):
                continue  # stored above
            tensors[f"data.{key}.{index}"] = value.float()
    save_file(tensors, folder / "reference.safetensors", metadata={"format": "pt"})
    facts = dict(
        made_by="scripts/engine-reference.py", python=platform.python_version(), torch=torch.__version__,
        transformers=transformers.__version__, seed=spec["seed"], rank=spec["rank"], alpha=ALPHA, targets=spec["targets"],
        sequences=sequences, losses=losses, adam=dict(steps=adam_steps, losses=["cross_entropy", "importance_sampling"], variants=adam_facts),
        greedy=dict(prompt=tokens, tokens=greedy, smallest_margin=margin), **({"gguf": spec["gguf"]} if "gguf" in spec else {}))
    (folder / "reference.json").write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{name}: {len(tensors)} tensors, smallest greedy margin {margin:.2e}")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    root = Path(sys.argv[1])
    if len(sys.argv) > 2 and sys.argv[2].endswith(".gguf"):
        path = Path(sys.argv[2]).resolve()
        torch.set_num_threads(2)
        spec, model = read_model(path)
        (root / path.stem).mkdir(parents=True, exist_ok=True)
        reference_for(path.stem, spec, root / path.stem, model)
        return
    for name, spec in MODELS.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        folder = root / name
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        reference_for(name, spec, folder)


main()
