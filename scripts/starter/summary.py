"""The page about the starter problems: what is in the files, counted."""

import collections

from families import SEEN, UNSEEN

PARTS = ("train", "seen", "composition", "unseen")

HEAD = """# Starter problems

{train} problems to train on (`train.jsonl`) and {test} to test with (`test.jsonl`), made by
`scripts/starter/generate.py`. A problem is a chain of one to three operations, told in words. `test.jsonl` has three parts:

- **seen**: families and pairs of families of the training set, with a parameter value that is nowhere in it;
- **composition**: families of the training set, two of which are never neighbours there;
- **unseen**: at least one family that is nowhere in the training set, nor in nano-coder's pre-training.

Rows have DeepCoder's columns (`problem`, `tests`, `starter_code`, `metadata`, `solutions`) and `id`, `family` (of the
first step), `composition` (of all steps), `params`, `tier` (number of steps), `kind`, `part` and `source`. Each has
{tests} tests. The reference solution passes all of them; a program that does nothing, echoes its input or prints a
constant fails, and so does each habitual mistake.

## Counts

| part | tier 1 | tier 2 | tier 3 | programs (stdin) | functions | all |
| --- | --- | --- | --- | --- | --- | --- |
"""

FAMILIES = """
## Families

How many problems use each. "Habit" marks families that nano-coder was pre-trained to get wrong more often than right.

| family | says, for example | habit | train | test |
| --- | --- | --- | --- | --- |
"""


def page(train: list[dict], test: list[dict], tests: int) -> str:
    rows = [*train, *test]
    lines = []
    for part in PARTS:
        own = [row for row in rows if row["part"] == part]
        tiers = [sum(row["tier"] == tier for row in own) for tier in (1, 2, 3)]
        kinds = [sum(row["kind"] == kind for row in own) for kind in ("stdin", "functional")]
        lines.append(f"| {part} | {' | '.join(map(str, (*tiers, *kinds, len(own))))} |")
    used = [
        collections.Counter(name for row in split for name in row["composition"].split("+")) for split in (train, test)
    ]
    families = []
    for family in (*SEEN, *UNSEEN):
        cells = (family.name, family.says[0], "yes" if family.habit else "", *(counts[family.name] for counts in used))
        families.append(f"| {' | '.join(map(str, cells))} |")
    head = HEAD.format(train=len(train), test=len(test), tests=tests)
    return head + "\n".join(lines) + "\n" + FAMILIES + "\n".join(families) + "\n"
