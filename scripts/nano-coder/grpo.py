"""GRPO on the starter problems, as this project's training loop does it: shows that the model can be taught.

    python3 scripts/nano-coder/grpo.py --model models/nano-coder [--steps 50] [--lr 1e-3] [--seed 0]

Steps 0 gives the base figures alone. Programs run inside the worker processes of this script, without a sandbox.
"""

import argparse
import json
import math
import multiprocessing
import pathlib
import random
import re
import sys
import time

import torch
from tokenizers import Tokenizer

import corpus
import model

sys.path.insert(0, str(corpus.ROOT / "scripts" / "starter"))
import runner

FENCE = re.compile(r"```[^\n`]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
PARTS = ("seen", "composition", "unseen")


def grade(job: tuple[str, str, str]) -> tuple[bool, bool]:
    """Whether the answer has a code block, and whether the last one passes every test."""
    answer, function, tests = job
    blocks = FENCE.findall(answer + "\n")
    if not blocks:
        return False, False
    return True, runner.passes(blocks[-1], function, json.loads(tests), seconds=1.0)


def wilson(right: int, count: int) -> list[float]:
    z, share = 1.959964, right / count
    middle = (share + z * z / 2 / count) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / 4 / count**2)
    return [round(middle - half, 3), round(middle + half, 3)]


class Trainer:
    def __init__(self, given: argparse.Namespace, pool) -> None:
        self.given, self.pool = given, pool
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.config, self.base = model.load(given.model, self.device)
        self.tokenizer = Tokenizer.from_file(str(given.model / "tokenizer.json"))
        self.stop = self.tokenizer.token_to_id("<|im_end|>")
        self.adapter = model.new_adapter(self.config, given.rank, self.device, given.seed)
        self.optimizer = torch.optim.Adam(self.adapter.values(), lr=given.lr, betas=(0.9, 0.95), eps=1e-12)
        self.generator = torch.Generator(device=self.device).manual_seed(given.seed)

    def tokens(self, row: dict) -> list[int]:
        return self.encode(corpus.prompt(row["problem"], row["starter_code"]))

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def answers(self, rows: list[dict], temperature: float, prompts: list[list[int]] | None = None):
        with torch.no_grad():
            weights = model.adapted(self.base, self.adapter)
        prompts = prompts or [self.tokens(row) for row in rows]
        drawn = model.sample(
            self.config, weights, prompts, self.given.max_tokens, self.stop, temperature, self.generator
        )
        texts = [self.tokenizer.decode(tokens, skip_special_tokens=True) for tokens, _ in drawn]
        jobs = [(text, row["metadata"]["func_name"] or "", row["tests"]) for text, row in zip(texts, rows, strict=True)]
        return prompts, drawn, texts, self.pool.map(grade, jobs, chunksize=4)

    def figures(self, rows: list[dict], temperature: float, copies: int = 1) -> dict:
        result = {}
        for part in PARTS:
            chosen = [row for row in rows if row["part"] == part for _ in range(copies)]
            prompts, drawn, texts, grades = self.answers(chosen, temperature)
            right, formed = sum(correct for _, correct in grades), sum(form for form, _ in grades)
            wrong = [index for index, (_, correct) in enumerate(grades) if not correct]
            again = [
                prompts[index] + self.encode(corpus.repair_prompt(texts[index], "wrong answer" if grades[index][0] else None))
                for index in wrong
            ]
            repaired = self.answers([chosen[index] for index in wrong], temperature, again)[3] if wrong else []
            result[part] = {
                "correct": round(right / len(chosen), 3),
                "interval": wilson(right, len(chosen)),
                "format": round(formed / len(chosen), 3),
                "repaired": round((right + sum(correct for _, correct in repaired)) / len(chosen), 3),
                "tokens": round(sum(len(tokens) for tokens, _ in drawn) / len(drawn), 1),
            }
        return result

    def step(self, rows: list[dict]) -> dict:
        copies = self.given.copies
        prompts, drawn, _, grades = self.answers([row for row in rows for _ in range(copies)], 1.0)
        rewards = torch.tensor([float(correct) - (0.0 if form else 0.1) for form, correct in grades]).view(-1, copies)
        advantages = (rewards - rewards.mean(1, keepdim=True)).flatten().tolist()
        kept = [index for index, advantage in enumerate(advantages) if abs(advantage) > 1e-8]
        result = {
            "format": sum(form for form, _ in grades) / len(grades),
            "correct": sum(correct for _, correct in grades) / len(grades),
            "skipped": int((rewards.max(1).values - rewards.min(1).values < 1e-8).sum()),
            "unsolved": int((rewards.max(1).values < 1).sum()),
            "tokens": sum(len(tokens) for tokens, _ in drawn) / len(drawn),
        }
        if not kept:
            return result
        length = max(len(prompts[index]) + len(drawn[index][0]) for index in kept)
        shape = (len(kept), length)
        ids = torch.full(shape, self.stop)
        old, advantage = torch.zeros(shape), torch.zeros(shape)
        for place, index in enumerate(kept):
            whole, start = prompts[index] + drawn[index][0], len(prompts[index])
            ids[place, : len(whole)] = torch.tensor(whole)
            old[place, start : len(whole)] = torch.tensor(drawn[index][1])
            advantage[place, start : len(whole)] = advantages[index]
        ids, old, advantage = ids.to(self.device), old.to(self.device), advantage.to(self.device)
        weights = model.adapted(self.base, self.adapter)
        hidden = model.forward(self.config, weights, ids[:, :-1])
        scores = model.logits(weights, hidden).log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        ratio = (scores - old[:, 1:]).where(advantage[:, 1:] != 0, 0).exp()
        loss = -(ratio * advantage[:, 1:]).sum()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return result | {"loss": loss.item()}


def read(file: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", type=pathlib.Path, required=True)
    options.add_argument("--data", type=pathlib.Path, default=corpus.ROOT / "data" / "starter")
    options.add_argument("--out", type=pathlib.Path)
    options.add_argument("--steps", type=int, default=50)
    options.add_argument("--prompts", type=int, default=8)
    options.add_argument("--copies", type=int, default=16)
    options.add_argument("--rank", type=int, default=32)
    options.add_argument("--lr", type=float, default=1e-3)
    options.add_argument("--max-tokens", type=int, default=112)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--eval-at", type=int, nargs="*", default=[0, 10, 25, 50])
    options.add_argument(
        "--base-copies", type=int, default=0, help="samples per test problem at temperature 1 before training"
    )
    options.add_argument("--name", default="grpo")
    given = options.parse_args()
    started = time.time()
    log = given.out.open("w") if given.out else None

    def note(**values) -> None:
        line = json.dumps({"run": given.name, "seconds": round(time.time() - started, 1), **values})
        print(line, flush=True)
        if log:
            log.write(line + "\n")
            log.flush()

    train, test = read(given.data / "train.jsonl"), read(given.data / "test.jsonl")
    random.Random(given.seed).shuffle(train)
    with multiprocessing.get_context("fork").Pool(given.workers, maxtasksperchild=2000) as pool:
        trainer = Trainer(given, pool)
        if given.base_copies:
            note(temperature=1, **trainer.figures(test, 1.0, given.base_copies))
        recent = []
        for step in range(given.steps + 1):
            if step in given.eval_at:
                note(step=step, temperature=0, **trainer.figures(test, 0.0))
            if step == given.steps:
                break
            rows = [train[(step * given.prompts + index) % len(train)] for index in range(given.prompts)]
            result = trainer.step(rows)
            recent.append(result)
            note(step=step, **{key: round(value, 3) for key, value in result.items()})
        if recent:
            note(
                last_ten={
                    key: round(sum(r[key] for r in recent[-10:]) / len(recent[-10:]), 3)
                    for key in ("format", "correct", "skipped", "unsolved")
                }
            )


if __name__ == "__main__":
    main()
