"""What a family is: one operation with its wording, its Python and, for some, the mistake a careless programmer makes.

A value's type is written as the letter that names its variable in every solution; operations chain where types meet:

    a list of integers    n integer         s line of text    w list of words    g grid of integers
    nm two integers       ab two lists of integers
    csv, pairs, plus, clock, bits, semi: lines of text with a format of their own (variable s)
"""

from collections.abc import Callable
from dataclasses import dataclass, field

Params = dict[str, int | str]

TEXT_FORMATS = ("csv", "pairs", "plus", "clock", "bits", "semi")


def variable(kind: str) -> str:
    return "s" if kind in TEXT_FORMATS else kind


@dataclass(frozen=True, eq=False)
class Family:
    name: str
    takes: str
    gives: str
    # A transformation is told as an order ("sort the numbers"), others as what comes out ("the sum of the numbers").
    says: tuple[str, ...]
    # The right expression over the input variable.
    expr: str
    # The same with the habitual mistake; empty where there is none.
    habit: str = ""
    # A function that the expression calls; it stands above everything else.
    helper: str = ""
    # Each parameter with the values it can take.
    params: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    # Inputs for which the operation is defined and its result small.
    domain: Callable[..., bool] = lambda value: True
    # Only changes the order of its input.
    rearranges: bool = False
    # Gives the same whatever the order of its input.
    ignores_order: bool = False
    # Gives YES or NO, so it stands last.
    verdict: bool = False

    @property
    def transforms(self) -> bool:
        return self.takes == self.gives and self.takes != "n" and not self.verdict


def span(low: int, high: int) -> tuple[int, ...]:
    return tuple(range(low, high + 1))
