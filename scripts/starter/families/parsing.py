"""A line with a format of its own in, which the program must take apart."""

from family import Family

FAMILIES = (
    Family(
        "comma_numbers",
        "csv",
        "a",
        ("the numbers between the commas", "the numbers in the line"),
        '[int(x) for x in s.split(",")]',
    ),
    Family(
        "pair_values",
        "pairs",
        "a",
        ("the values after the equals signs", "the value of each pair"),
        '[int(x.split("=")[1]) for x in s.split(",")]',
    ),
    Family(
        "pair_names",
        "pairs",
        "w",
        ("the names before the equals signs", "the name of each pair"),
        '[x.split("=")[0] for x in s.split(",")]',
    ),
    Family(
        "terms",
        "plus",
        "a",
        ("the terms of the sum", "the numbers that the expression adds"),
        '[int(x) for x in s.split("+")]',
    ),
    Family(
        "minutes",
        "clock",
        "n",
        ("the number of minutes since midnight", "how many minutes of the day have passed"),
        "int(s[:2]) * 60 + int(s[3:])",
    ),
    Family(
        "from_binary",
        "bits",
        "n",
        ("the value of the binary number", "the number that the bits stand for"),
        "int(s, 2)",
    ),
)
