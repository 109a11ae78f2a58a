"""Pre-trains nano-coder: vocabulary, corpus, weights. Writes a Hugging Face folder.

python3 scripts/nano-coder/pretrain.py --out models/nano-coder [--steps 4000] [--batch 512]
"""

import argparse
import json
import math
import multiprocessing
import os
import pathlib
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

import corpus
import model
import vocabulary

LENGTH = 448  # tokens of a training row; longer samples are left out
PROMPT_WEIGHT = 0.1  # loss weight of prompt tokens against answer tokens; none for a conversation's, which tell of mistakes


def draw_texts(job: tuple[int, int, int]) -> list[tuple[str, str]]:
    seed, worker, count = job
    rng = random.Random(f"{seed} corpus {worker}")
    return [corpus.draw(rng) for _ in range(count)]


def encode_texts(job: tuple[int, int, int, str]) -> tuple[np.ndarray, np.ndarray]:
    """Token rows, where each answer starts and ends, and whether what comes before it is learned too."""
    seed, worker, count, file = job
    tokenizer = Tokenizer.from_file(file)
    rng = random.Random(f"{seed} repairs {worker}")
    repairs = [corpus.draw_repair(rng) for _ in range(round(count * corpus.REPAIRS))]
    texts = draw_texts((seed, worker, count - len(repairs))) + repairs
    pad = tokenizer.token_to_id("<|endoftext|>")
    prompts = tokenizer.encode_batch([prompt for prompt, _ in texts])
    answers = tokenizer.encode_batch([answer + "<|im_end|>" for _, answer in texts])
    rows, edges = [], []
    for index, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        ids = prompt.ids + answer.ids
        if len(ids) <= LENGTH:
            rows.append(ids + [pad] * (LENGTH - len(ids)))
            edges.append((len(prompt.ids), len(ids), index < len(texts) - len(repairs)))
    return np.array(rows, dtype=np.int16), np.array(edges, dtype=np.int16)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=pathlib.Path, required=True)
    options.add_argument("--steps", type=int, default=4000)
    options.add_argument("--batch", type=int, default=512)
    options.add_argument("--lr", type=float, default=3e-3)
    options.add_argument("--samples", type=int, default=1_000_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    workers = os.cpu_count() or 1
    started = time.time()
    log = (given.out / "pretrain.jsonl").open("w")

    def note(**values) -> None:
        line = json.dumps({"seconds": round(time.time() - started, 1), **values})
        print(line, flush=True)
        log.write(line + "\n")
        log.flush()

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        texts = [
            text
            for part in pool.map(draw_texts, [(given.seed, -1 - i, 20_000 // workers) for i in range(workers)])
            for text in part
        ]
        tokenizer = vocabulary.train(part for text in texts for part in text)
        vocabulary.save(tokenizer, given.out, model.CONFIG["max_position_embeddings"])
        file = str(given.out / "tokenizer.json")
        chunks = workers * 4
        parts = pool.map(
            encode_texts, [(given.seed, i, given.samples // chunks, file) for i in range(chunks)], chunksize=1
        )
    rows = torch.from_numpy(np.concatenate([part[0] for part in parts])).to(device)
    edges = torch.from_numpy(np.concatenate([part[1] for part in parts])).to(device)
    sizes = edges.float().mean(0).tolist()
    note(
        samples=len(rows),
        kept=round(len(rows) / given.samples, 4),
        prompt_tokens=sizes[0],
        answer_tokens=sizes[1] - sizes[0],
    )

    end = tokenizer.token_to_id("<|im_end|>")
    config = model.CONFIG | {"eos_token_id": end, "pad_token_id": tokenizer.token_to_id("<|endoftext|>")}
    weights = {name: tensor.requires_grad_() for name, tensor in model.new_weights(config, device, given.seed).items()}
    note(
        parameters=sum(tensor.numel() for tensor in weights.values()),
        device=torch.cuda.get_device_name() if device == "cuda" else "cpu",
    )
    matrices = [tensor for tensor in weights.values() if tensor.ndim == 2]
    vectors = [tensor for tensor in weights.values() if tensor.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=given.lr, betas=(0.9, 0.95), fused=device == "cuda")

    def loss_of(tokens: torch.Tensor, edge: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            hidden = model.forward(config, weights, tokens[:, :-1])
            table = model.logits(weights, hidden)
        loss = F.cross_entropy(table.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none").view(len(tokens), -1)
        place = torch.arange(1, tokens.shape[1], device=device)[None]
        answer = ((place >= edge[:, :1]) & (place < edge[:, 1:2])).float()
        prompt = ((place < edge[:, :1]) & (edge[:, 2:] > 0)).float()
        weight = answer + PROMPT_WEIGHT * prompt
        return (loss * weight).sum() / weight.sum(), (loss.detach() * answer).sum() / answer.sum()

    step_loss = torch.compile(loss_of) if device == "cuda" else loss_of
    generator = torch.Generator(device=device).manual_seed(given.seed)
    order = torch.randperm(len(rows), generator=generator, device=device)
    offset = 0
    warmup = max(1, min(200, given.steps // 10))
    for step in range(given.steps):
        if offset + given.batch > len(rows):
            order, offset = torch.randperm(len(rows), generator=generator, device=device), 0
        chosen = order[offset : offset + given.batch]
        offset += given.batch
        rate = (
            given.lr
            * min(1.0, (step + 1) / warmup)
            * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / given.steps)))
        )
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss, answer = step_loss(rows[chosen].long(), edges[chosen])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % max(1, given.steps // 20) == 0 or step == given.steps - 1:
            note(step=step, loss=round(loss.item(), 4), answer_loss=round(answer.item(), 4), lr=rate)
    model.save(given.out, config, {name: tensor.detach() for name, tensor in weights.items()})
    generation = {"eos_token_id": end, "pad_token_id": config["pad_token_id"], "do_sample": True, "temperature": 1.0}
    (given.out / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    note(done=True)


if __name__ == "__main__":
    main()
