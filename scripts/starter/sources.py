"""Where a problem's input comes from: how the statement tells it, how a program reads it, and random values of it."""

import functools
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass

from family import Params

WORDS = (
    "stone river cloud tree apple bread candle dragon eagle forest garden hammer island jacket kettle "
    "lemon mirror needle ocean pencil quartz rabbit silver tunnel umbrella violin window yellow zebra ant "
    "bee cat dog elk fox gnu hen ibis jay kite lark moth newt owl pike quail rook swan toad urchin vole "
    "wasp yak level radar noon civic kayak a an it so up oak ash elm fig ice ink anchor basket copper "
    "desert engine falcon"
).split()


@dataclass(frozen=True)
class Source:
    # How often a chain starts here, relative to the other sources.
    weight: float
    # First sentence of the statement, for a program and for a function.
    stdin: tuple[str, ...]
    call: tuple[str, ...]
    # Lines of Python that read it from stdin.
    read: str
    arguments: str
    sample: Callable[[random.Random, Params], object]
    write: Callable[[object], str]
    # The argument values of a call.
    args: Callable[[object], list] = lambda value: [value]


def integers(rng: random.Random, params: Params, low: int = 1) -> list[int]:
    near = [value + shift for value in params.values() if isinstance(value, int) for shift in (-1, 0, 0, 0, 1)] or [0]
    size = rng.choice((low, 2, 4, 5, 6, 7, 8, 10))
    values = [rng.choice(near) if rng.random() < 0.3 else rng.randint(-20, 60) for _ in range(max(size, low))]
    if rng.random() < 0.5:
        for index in range(1, len(values)):
            if rng.random() < 0.35:
                values[index] = values[rng.randrange(index)] * rng.choice((1, 1, -1))
    return values


def integer(rng: random.Random, params: Params) -> int:
    near = [value * factor for value in params.values() if isinstance(value, int) for factor in (1, 2, 3)] or [1]
    draw = rng.random()
    if draw < 0.2:
        return rng.choice((0, 1, 2, 3))
    if draw < 0.35:
        return rng.choice(near)
    return rng.randint(1, rng.choice((12, 60, 60, 2000)))


@functools.cache
def words_with(letters: tuple[str, ...]) -> list[str]:
    """The words with one of these letters; all words where there is none."""
    return [word for word in WORDS if any(letter in word for letter in letters)] or WORDS


def words(rng: random.Random, params: Params) -> list[str]:
    liked = words_with(tuple(value for value in params.values() if isinstance(value, str) and value.isalpha()))
    line = [rng.choice(liked if rng.random() < 0.5 else WORDS) for _ in range(rng.choice((1, 2, 4, 5, 6, 7, 8)))]
    if rng.random() < 0.5:
        line += rng.choices(line, k=rng.choice((1, 2, 3)))
    return line


def text(rng: random.Random, params: Params) -> str:
    letters = [value for value in params.values() if isinstance(value, str) and value.isalpha()]
    draw = rng.random()
    if draw < 0.3:
        line = "".join(
            rng.choice(string.ascii_lowercase[:8] + "".join(letters) * 3) for _ in range(rng.choice((1, 3, 6, 9, 14)))
        )
    else:
        line = " ".join(rng.choice(words(rng, params)) for _ in range(rng.choice((1, 2, 3))))
    if draw > 0.85:
        line += line[::-1][rng.choice((0, 1)) :]
    if rng.random() < 0.6:
        line = "".join(c.upper() if rng.random() < 0.3 else c for c in line)
    if rng.random() < 0.4:
        line = "".join(c + str(rng.randrange(10)) if rng.random() < 0.25 else c for c in line)
    return line


def grid(rng: random.Random, params: Params) -> list[list[int]]:
    values = [value for value in params.values() if isinstance(value, int)] or [0]
    rows = rng.choice((1, 2, 3, 3, 4))
    columns = rows if rng.random() < 0.6 else rng.choice((1, 2, 3, 4))
    return [
        [rng.choice(values) if rng.random() < 0.2 else rng.randint(-9, 20) for _ in range(columns)] for _ in range(rows)
    ]


def two_lists(rng: random.Random, params: Params) -> list[list[int]]:
    first = integers(rng, params)
    second = [rng.choice(first) if rng.random() < 0.4 else rng.randint(-20, 60) for _ in first]
    return [first, second]


def two_integers(rng: random.Random, params: Params) -> list[int]:
    first = integer(rng, params) % 400
    return [first, first + rng.randint(0, 12)] if rng.random() < 0.5 else [first, integer(rng, params) % 400]


def pairs(rng: random.Random, params: Params) -> str:
    return ",".join(f"{word}={value}" for word, value in zip(words(rng, params), integers(rng, params), strict=False))


def row(values: list[int]) -> str:
    return " ".join(map(str, values)) + "\n"


def line(value: object) -> str:
    return f"{value}\n"


SOURCES = {
    "a": Source(
        4,
        (
            "The input is one line of integers.",
            "You are given integers on one line, separated by spaces.",
            "A sensor has logged integers on one line.",
            "Ana wrote some integers on one line.",
            "The scores of a game are integers on one line.",
        ),
        (
            "You are given a list a of integers.",
            "The argument a is a list of integers.",
            "The list a holds the scores of a game.",
            "A sensor has logged the integers in list a.",
        ),
        "a = list(map(int, input().split()))",
        "a",
        integers,
        row,
    ),
    "n": Source(
        2.2,
        (
            "The input is an integer n.",
            "You are given one integer n.",
            "A line holds an integer n.",
            "Tom thinks of an integer n.",
        ),
        ("You are given an integer n.", "The argument n is an integer.", "Tom thinks of an integer n."),
        "n = int(input())",
        "n",
        integer,
        line,
    ),
    "s": Source(
        2.4,
        (
            "The input is a line of text.",
            "You are given a text on one line.",
            "A message stands on one line.",
            "Read one line of text.",
        ),
        ("You are given a text s.", "The argument s is a string.", "The string s is a message."),
        "s = input()",
        "s",
        text,
        line,
    ),
    "w": Source(
        2,
        (
            "The input is a line of words.",
            "You are given words on one line.",
            "Eva wrote some words on one line.",
            "A line holds several words.",
        ),
        ("You are given a list w of words.", "The argument w is a list of words.", "Eva wrote the words in list w."),
        "w = input().split()",
        "w",
        words,
        lambda value: " ".join(value) + "\n",
    ),
    "g": Source(
        1.2,
        (
            "The first line is the number of rows of a grid, then each row follows as integers.",
            "A grid is given: first how many rows it has, then its rows of integers.",
        ),
        (
            "You are given a grid g of integers, as a list of rows.",
            "The argument g is a grid: a list of rows of integers.",
        ),
        "g = [list(map(int, input().split())) for _ in range(int(input()))]",
        "g",
        grid,
        lambda value: f"{len(value)}\n" + "".join(map(row, value)),
    ),
    "nm": Source(
        0.8,
        ("The input is two integers n and m on one line.", "You are given integers n and m, separated by a space."),
        ("You are given two integers n and m.", "The arguments n and m are integers."),
        "n, m = map(int, input().split())",
        "n, m",
        two_integers,
        row,
        list,
    ),
    "ab": Source(
        0.9,
        ("The input is two lines, each a list of integers.", "Two lists of integers are given, one per line."),
        (
            "You are given two lists a and b of integers.",
            "The arguments a and b are lists of integers, the first and the second.",
        ),
        "a = list(map(int, input().split()))\nb = list(map(int, input().split()))",
        "a, b",
        two_lists,
        lambda value: row(value[0]) + row(value[1]),
        list,
    ),
    "csv": Source(
        0.5,
        ("The input is a line of integers separated by commas.", "A line holds integers with commas between them."),
        (
            "You are given a string s of integers separated by commas.",
            "The string s holds integers with commas between them.",
        ),
        "s = input()",
        "s",
        lambda rng, params: ",".join(map(str, integers(rng, params))),
        line,
    ),
    "pairs": Source(
        0.6,
        ("The input is a line of name=value pairs separated by commas.", "A line lists settings like x=3,y=5."),
        (
            "You are given a string s of name=value pairs separated by commas.",
            "The string s lists settings like x=3,y=5.",
        ),
        "s = input()",
        "s",
        pairs,
        line,
    ),
    "plus": Source(
        0.4,
        ("The input is a sum like 3+14+5.", "A line holds integers with plus signs between them."),
        ("You are given a sum like 3+14+5 as a string s.", "The string s holds integers with plus signs between them."),
        "s = input()",
        "s",
        lambda rng, params: "+".join(str(abs(value)) for value in integers(rng, params)),
        line,
    ),
    "clock": Source(
        0.3,
        ("The input is a time of day like 09:35.", "A clock shows a time in the form hh:mm."),
        ("You are given a time of day s like 09:35.", "The string s is a time in the form hh:mm."),
        "s = input()",
        "s",
        lambda rng, params: f"{rng.choice((0, rng.randrange(24))) % 24:02}:{rng.randrange(60):02}",
        line,
    ),
    "bits": Source(
        0.3,
        ("The input is a binary number.", "A line holds a number in binary."),
        ("You are given a binary number as a string s.", "The string s is a number in binary."),
        "s = input()",
        "s",
        lambda rng, params: f"{integer(rng, params):b}",
        line,
    ),
    "semi": Source(
        0.5,
        (
            "The input is a line of integers separated by semicolons.",
            "A line holds integers with semicolons between them.",
        ),
        (
            "You are given a string s of integers separated by semicolons.",
            "The string s holds integers with semicolons between them.",
        ),
        "s = input()",
        "s",
        lambda rng, params: ";".join(map(str, integers(rng, params))),
        line,
    ),
}


def call_input(kind: str, value: object) -> str:
    """The arguments of one call, one JSON value per line."""
    return "\n".join(json.dumps(argument) for argument in SOURCES[kind].args(value))
