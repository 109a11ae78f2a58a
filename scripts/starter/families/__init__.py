"""The families: every operation a starter problem can ask for, one module per kind of input."""

from . import grids, lists, numbers, parsing, recursion, strings, unseen, words

SEEN = tuple(
    family for group in (numbers, recursion, lists, strings, words, grids, parsing) for family in group.FAMILIES
)
UNSEEN = unseen.FAMILIES
BY_NAME = {family.name: family for family in (*SEEN, *UNSEEN)}

assert len(BY_NAME) == len(SEEN) + len(UNSEEN), "two families share a name"
