"""Writes training problems of the families that are nowhere in training: those of the part "unseen", none of its problems.

python3 scripts/starter/taught.py OUT.jsonl [--count 400] [--seed 1]

A problem is another one when its chain of families or one of their parameters is. The same seed gives the same bytes.
"""

import argparse
import collections
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from families import UNSEEN
from generate import check, draw_tests, row
from problem import draw_problem, draw_steps, part_of

TEST = pathlib.Path(__file__).parents[2] / "data" / "starter" / "test.jsonl"
# Shares of problems by their number of steps, as the part "unseen" has them; few of one step are left.
TIERS = (1, 2, 2, 2, 3, 3)


def key_of(item: dict) -> str:
    """What `Problem.key` is for a row."""
    parts = zip(item["composition"].split("+"), item["params"], strict=True)
    return "+".join(name + "".join(f":{value}" for value in params.values()) for name, params in parts)


def draw(rng: random.Random, count: int, taken: set[str]) -> list[dict]:
    rows: list[dict] = []
    alike = collections.Counter()
    most = -(-count // len(UNSEEN)) + 1
    while len(rows) < count:
        steps = draw_steps(rng, rng.choice(TIERS), "all")
        if steps is None or part_of(steps) != "unseen":
            continue
        family = next(step.family.name for step in steps if step.family in UNSEEN)
        problem = draw_problem(rng, steps)
        if problem.key in taken or alike[family] >= most:
            continue
        tests = draw_tests(rng, problem)
        if tests is None or not check(problem, tests):
            continue
        taken.add(problem.key)
        alike[family] += 1
        rows.append(row(problem, tests, "taught", len(rows)))
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("out", type=pathlib.Path)
    options.add_argument("--count", type=int, default=400)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    taken = {key_of(json.loads(line)) for line in TEST.read_text(encoding="utf-8").splitlines()}
    rows = draw(random.Random(f"{given.seed} taught"), given.count, taken)
    given.out.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
