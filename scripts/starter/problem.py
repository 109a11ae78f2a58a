"""A problem: a chain of families with parameters, told in words and solved in Python.

The wording, the function's name and the kind (program or function) vary with the random generator that draws the
problem; the reference solution is one fixed way to write the chain, so a model that reads the statement can find it.
"""

import hashlib
import random
from dataclasses import dataclass

from families import BY_NAME, SEEN, UNSEEN
from family import Family, Params, variable
from sources import SOURCES

FUNCTION_NAMES = (
    "solve",
    "answer",
    "compute",
    "process",
    "result",
    "evaluate",
    "work_out",
    "find",
    "get_answer",
    "handle",
)
# Closing sentence of a problem whose last step transforms: of a program, of a function.
OUTPUT = {
    "a": (
        ("Print the resulting numbers separated by spaces.", "Print the numbers you get on one line."),
        ("Return the resulting list.", "Return the list you get."),
    ),
    "w": (
        ("Print the resulting words separated by spaces.", "Print the words you get on one line."),
        ("Return the resulting list.", "Return the list you get."),
    ),
    "s": (
        ("Print the resulting text.", "Print the text you get."),
        ("Return the resulting text.", "Return the text you get."),
    ),
}


@dataclass(frozen=True, eq=False)
class Step:
    family: Family
    params: Params

    def fill(self, template: str) -> str:
        for name, value in self.params.items():
            template = template.replace("{" + name + "}", str(value))
        return template

    @property
    def key(self) -> str:
        return self.family.name + "".join(f":{value}" for value in self.params.values())


@dataclass(frozen=True, eq=False)
class Problem:
    steps: tuple[Step, ...]
    kind: str  # "stdin" or "call"
    function: str
    statement: str

    @property
    def source(self) -> str:
        return self.steps[0].family.takes

    @property
    def composition(self) -> str:
        return "+".join(step.family.name for step in self.steps)

    @property
    def key(self) -> str:
        return "+".join(step.key for step in self.steps)

    @property
    def habits(self) -> tuple[int, ...]:
        """Indices of the steps that have a habitual mistake."""
        return tuple(index for index, step in enumerate(self.steps) if step.family.habit)

    @property
    def starter(self) -> str:
        return f"def {self.function}({SOURCES[self.source].arguments}):\n    pass" if self.kind == "call" else ""

    def solution(self, wrong: tuple[int, ...] = ()) -> str:
        """The program, with the habitual mistake in the steps that `wrong` names."""
        body = [] if self.kind == "call" else [SOURCES[self.source].read]
        for index, step in enumerate(self.steps):
            family = step.family
            expression = step.fill(family.habit if index in wrong else family.expr)
            last = index == len(self.steps) - 1
            if not last or (self.kind == "stdin" and family.gives in "aw"):
                body.append(f"{variable(family.gives)} = {expression}")
            if last and self.kind == "call":
                body.append(f"return {expression}")
            elif last:
                body.append(f"print(*{family.gives})" if family.gives in "aw" else f"print({expression})")
        if self.kind == "call":
            lines = "\n".join(body).split("\n")
            body = [f"def {self.function}({SOURCES[self.source].arguments}):"] + [f"    {line}" for line in lines]
        return "\n".join(
            [*dict.fromkeys(step.family.helper + "\n" for step in self.steps if step.family.helper), *body]
        )


def held_out(text: str, share: float) -> bool:
    """Always the same answer for a text, true for about this share of all texts."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") < share * 2**32


def is_new_parameter(step: Step) -> bool:
    """Parameter values that only the test set uses."""
    return bool(step.params) and held_out(f"parameter {step.key}", 0.2)


def is_new_pair(first: Step, second: Step) -> bool:
    """Neighbouring families that only the test set uses."""
    return held_out(f"pair {first.family.name} {second.family.name}", 0.15)


def is_rare_pair(first: Step, second: Step) -> bool:
    """Neighbouring families that pre-training shows ten times less often than others."""
    return held_out(f"rare {first.family.name} {second.family.name}", 0.15)


def pairs_of(steps: tuple[Step, ...]):
    return zip(steps, steps[1:], strict=False)


def part_of(steps: tuple[Step, ...]) -> str:
    """Where a chain may be used: "train", or one part of the test set; "none" if it would belong to two parts."""
    unseen = any(step.family in UNSEEN for step in steps)
    composition = any(is_new_pair(*pair) for pair in pairs_of(steps))
    parameter = any(is_new_parameter(step) for step in steps)
    if unseen:
        return "none" if parameter else "unseen"
    if composition:
        return "none" if parameter else "composition"
    return "seen" if parameter else "train"


def fits(first: Family, second: Family) -> bool:
    """Whether the second family can follow the first and still matters."""
    if first.gives != second.takes or first is second or first.verdict:
        return False
    if first.helper and second.helper:
        return False
    return not (first.rearranges and (second.ignores_order or second.rearranges))


FOLLOWERS: dict[str, dict[str, list[Family]]] = {}
for group_name, group in (("seen", SEEN), ("all", (*SEEN, *UNSEEN))):
    FOLLOWERS[group_name] = {
        family.name: [next_ for next_ in group if fits(family, next_)] for family in BY_NAME.values()
    }
STARTERS = {
    group_name: {kind: [family for family in group if family.takes == kind] for kind in SOURCES}
    for group_name, group in (("seen", SEEN), ("all", (*SEEN, *UNSEEN)))
}


def draw_params(rng: random.Random, family: Family) -> Params:
    while True:
        params = {name: rng.choice(values) for name, values in family.params.items()}
        if len(set(params.values())) == len(params):
            return params


def draw_steps(rng: random.Random, size: int, group: str = "seen") -> tuple[Step, ...] | None:
    """A chain of this many steps; None when the random walk got stuck."""
    starters = STARTERS[group]
    kinds = [kind for kind in SOURCES if starters[kind]]
    kind = rng.choices(kinds, [SOURCES[kind].weight for kind in kinds])[0]
    families = [rng.choice(starters[kind])]
    while len(families) < size:
        options = FOLLOWERS[group][families[-1].name]
        if not options:
            return None
        families.append(rng.choice(options))
    if len(set(families)) < size or sum(bool(family.helper) for family in families) > 1:
        return None
    return tuple(Step(family, draw_params(rng, family)) for family in families)


def tell(rng: random.Random, steps: tuple[Step, ...], kind: str) -> str:
    """The statement, in one of many wordings."""
    source = SOURCES[steps[0].family.takes]
    sentences = [rng.choice(source.stdin if kind == "stdin" else source.call)]
    orders: list[str] = []

    def flush() -> None:
        if len(orders) >= 2 and rng.random() < 0.5:
            joint = rng.choice((", then ", ", and then "))
            orders[-2:] = [orders[-2] + joint + orders[-1]]
        for index, order in enumerate(orders):
            opening = (
                rng.choice(("First ", ""))
                if index == 0 and len(orders) > 1
                else rng.choice(("Then ", "After that "))
                if index
                else ""
            )
            text = opening + order
            sentences.append(text[0].upper() + text[1:] + ".")
        orders.clear()

    for index, step in enumerate(steps):
        family, last = step.family, index == len(steps) - 1
        words = step.fill(rng.choice(family.says))
        if family.transforms:
            orders.append(words)
            if last:
                flush()
                sentences.append(rng.choice(OUTPUT[family.gives][0 if kind == "stdin" else 1]))
        else:
            flush()
            if last:
                verb = "Return" if kind == "call" else "On one line, print" if family.gives in "aw" else "Print"
                sentences.append(f"{verb} {words}.")
            elif family.gives == "n":
                sentences.append(f"Replace n by {words}." if family.takes == "n" else f"Let n be {words}.")
            else:
                sentences.append(f"Take {words}.")
    return " ".join(sentences)


def draw_problem(rng: random.Random, steps: tuple[Step, ...]) -> Problem:
    kind = "stdin" if rng.random() < 0.55 else "call"
    function = rng.choice(FUNCTION_NAMES) if kind == "call" else ""
    return Problem(steps, kind, function, tell(rng, steps, kind))
