"""A grid of integers in."""

from family import Family, span


def square(g):
    return len(g) == len(g[0])


FAMILIES = (
    Family("row_sums", "g", "a", ("the sum of each row", "the row totals from top to bottom"), "[sum(r) for r in g]"),
    Family(
        "column_sums",
        "g",
        "a",
        ("the sum of each column", "the column totals from left to right"),
        "[sum(c) for c in zip(*g)]",
    ),
    Family(
        "row_maxima",
        "g",
        "a",
        ("the largest number of each row", "the maximum of every row, top to bottom"),
        "[max(r) for r in g]",
    ),
    Family(
        "column_minima",
        "g",
        "a",
        ("the smallest number of each column", "the minimum of every column, left to right"),
        "[min(c) for c in zip(*g)]",
    ),
    Family(
        "diagonal",
        "g",
        "a",
        ("the numbers on the diagonal from the top left corner", "the diagonal that starts at the top left"),
        "[g[i][i] for i in range(len(g))]",
        domain=square,
    ),
    Family(
        "other_diagonal",
        "g",
        "a",
        ("the numbers on the diagonal from the top right corner down", "the diagonal that starts at the top right"),
        "[g[i][-i - 1] for i in range(len(g))]",
        "[g[i][-i] for i in range(len(g))]",
        domain=square,
    ),
    Family(
        "flat",
        "g",
        "a",
        ("all numbers of the grid, row by row", "the rows of the grid one after another in one list"),
        "[x for r in g for x in r]",
    ),
    Family(
        "count_in_grid",
        "g",
        "n",
        ("how many cells hold {k}", "the number of times {k} stands in the grid"),
        "sum(r.count({k}) for r in g)",
        params={"k": span(0, 9)},
    ),
    Family(
        "last_column",
        "g",
        "a",
        ("the last number of each row", "the rightmost column from top to bottom"),
        "[r[-1] for r in g]",
    ),
)
