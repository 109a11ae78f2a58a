"""Writes data/starter: train.jsonl, test.jsonl and a page with counts. The same seed gives the same bytes.

python3 scripts/starter/generate.py [--seed 1] [--out data/starter]
"""

import argparse
import collections
import functools
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import runner
import summary
from families import UNSEEN
from family import variable
from problem import Problem, Step, draw_problem, draw_steps, pairs_of, part_of
from sources import SOURCES, call_input

TESTS = 8
# Problems per tier (a tier is the number of steps).
SIZES = {
    "train": {1: 300, 2: 1200, 3: 900},
    "seen": {1: 30, 2: 70, 3: 50},
    "composition": {2: 75, 3: 75},
    "unseen": {1: 30, 2: 75, 3: 45},
}
# Share of problems with that many steps that invite a habitual mistake.
HABITS = {0: 0.39, 1: 0.45, 2: 0.16}
# At most this many problems of one chain of families in a part; in "unseen", of one unseen family.
MAX_ALIKE = {"train": 14, "seen": 3, "composition": 3, "unseen": 8}


@functools.cache
def compiled(source: str, mode: str):
    return compile(source, "step", mode)


def apply(step: Step, value: object, wrong: bool = False) -> object:
    names: dict[str, object] = {}
    exec(compiled(step.family.helper, "exec"), names)
    kind = step.family.takes
    if kind in ("nm", "ab"):
        names.update(zip(kind, value, strict=True))
    else:
        names[variable(kind)] = value
    return eval(compiled(step.fill(step.family.habit if wrong else step.family.expr), "eval"), names)


def evaluate(steps: tuple[Step, ...], value: object, wrong: int | None = None) -> object:
    """What the chain makes of an input; None where a step is not defined or the result is out of bounds."""
    for index, step in enumerate(steps):
        try:
            if not step.family.domain(value):
                return None
            value = apply(step, value, index == wrong)
        except (ValueError, IndexError, ZeroDivisionError, OverflowError, TypeError):
            return None
        if len(str(value)) > 160 or isinstance(value, int) and abs(value) > 10**12:
            return None
    return value


def written(problem: Problem, value: object) -> str:
    if problem.kind == "call":
        return json.dumps(value)
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def draw_tests(rng: random.Random, problem: Problem) -> list[dict] | None:
    """Tests that every habitual mistake fails, edge cases included; None if the problem has no such tests."""
    source, params = SOURCES[problem.source], {}
    for index, step in enumerate(problem.steps):
        params.update({f"{name}{index}": value for name, value in step.params.items()})
    found: dict[str, tuple[str, set[int]]] = {}
    for _ in range(120):
        value = source.sample(rng, params)
        result = evaluate(problem.steps, value)
        if result is None:
            continue
        text = source.write(value) if problem.kind == "stdin" else call_input(problem.source, value)
        caught = {index for index in problem.habits if evaluate(problem.steps, value, index) != result}
        found[text] = (written(problem, result), caught)
        if len(found) >= 40:
            break
    if len(found) < TESTS:
        return None

    chosen: list[str] = []
    for index in problem.habits:
        catching = [text for text, (_, caught) in found.items() if index in caught and text not in chosen]
        if len(catching) < 2:
            return None
        chosen += catching[:2]
    by_size = sorted(found, key=lambda text: (len(text), text))
    seen = {found[text][0] for text in chosen}
    fresh = [text for text in found if text not in chosen and not (found[text][0] in seen or seen.add(found[text][0]))]
    for text in [by_size[0], *fresh, by_size[-1], *found]:
        if text not in chosen and len(chosen) < TESTS:
            chosen.append(text)

    counts = collections.Counter(found[text][0] for text in chosen)
    verdict = problem.steps[-1].family.verdict
    if len(counts) < (2 if verdict else 4) or max(counts.values()) > TESTS - 2:
        return None
    if sum(runner.outputs_match(text, found[text][0]) for text in chosen) > TESTS - 3:
        return None
    testtype = "stdin" if problem.kind == "stdin" else "functional"
    return [{"input": text, "output": found[text][0], "testtype": testtype} for text in chosen]


def check(problem: Problem, tests: list[dict]) -> bool:
    """The reference passes; each single habitual mistake fails."""
    if not runner.passes(problem.solution(), problem.function, tests):
        return False
    return not any(runner.passes(problem.solution((index,)), problem.function, tests) for index in problem.habits)


def row(problem: Problem, tests: list[dict], part: str, number: int) -> dict:
    functional = problem.kind == "call"
    return {
        "id": f"starter-{part}-{number:04}",
        "problem": problem.statement,
        "tests": json.dumps(tests),
        "starter_code": problem.starter,
        "metadata": {"func_name": problem.function if functional else None},
        "solutions": [problem.solution()],
        "family": problem.steps[0].family.name,
        "composition": problem.composition,
        "params": [step.params for step in problem.steps],
        "tier": len(problem.steps),
        "kind": "functional" if functional else "stdin",
        "part": part,
        "source": "starter" if part == "train" else f"starter-{part}",
    }


def draw_part(rng: random.Random, part: str, known_pairs: set[tuple[str, str]] | None) -> list[dict]:
    """The problems of one part. A chain of the part "seen" uses only pairs of families that training has."""
    rows: list[dict] = []
    keys: set[str] = set()
    alike = collections.Counter()
    group = "all" if part == "unseen" else "seen"
    for tier, size in SIZES[part].items():
        shares = {0: 0.7, 1: 0.3} if tier == 1 else HABITS
        quota = {count: round(size * share) for count, share in shares.items()}
        wanted = len(rows) + size
        tries = 0
        while len(rows) < wanted:
            tries += 1
            if sum(quota.values()) <= 0 or tries > 3000:  # a quota that cannot be filled is opened to the others
                quota = dict.fromkeys(quota, wanted - len(rows))
            steps = draw_steps(rng, tier, group)
            if steps is None or part_of(steps) != part:
                continue
            problem = draw_problem(rng, steps)
            habits = len(problem.habits)
            if part != "unseen" and (habits not in quota or quota[habits] <= 0):
                continue
            label = next((step.family.name for step in steps if step.family in UNSEEN), problem.composition)
            if problem.key in keys or alike[label] >= MAX_ALIKE[part]:
                continue
            names = {(first.family.name, second.family.name) for first, second in pairs_of(steps)}
            if part == "seen" and known_pairs is not None and not names <= known_pairs:
                continue
            tests = draw_tests(rng, problem)
            if tests is None or not check(problem, tests):
                continue
            tries = 0
            keys.add(problem.key)
            alike[label] += 1
            if part != "unseen":
                quota[habits] -= 1
            rows.append(row(problem, tests, part, len(rows)))
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "data" / "starter")
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)

    train = draw_part(random.Random(f"{given.seed} train"), "train", None)
    random.Random(f"{given.seed} order").shuffle(train)
    chains = [item["composition"].split("+") for item in train]
    known = {pair for names in chains for pair in zip(names, names[1:], strict=False)}
    test = [
        item
        for part in ("seen", "composition", "unseen")
        for item in draw_part(random.Random(f"{given.seed} {part}"), part, known)
    ]
    for name, rows in (("train", train), ("test", test)):
        text = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in rows)
        (given.out / f"{name}.jsonl").write_text(text, encoding="utf-8")
        print(f"{name}: {len(rows)} problems")
    (given.out / "README.md").write_text(summary.page(train, test, TESTS), encoding="utf-8")


if __name__ == "__main__":
    main()
