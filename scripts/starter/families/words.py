"""A line of words in."""

import string

from family import Family, span

LETTERS = tuple(string.ascii_lowercase)


def some(w):
    return len(w) >= 1


FAMILIES = (
    Family(
        "keep_longer",
        "w",
        "w",
        ("keep only the words with more than {k} letters", "drop the words of {k} letters or fewer"),
        "[x for x in w if len(x) > {k}]",
        params={"k": span(2, 7)},
    ),
    Family(
        "keep_starting",
        "w",
        "w",
        ('keep only the words that start with "{c}"', 'drop the words whose first letter is not "{c}"'),
        '[x for x in w if x[0] == "{c}"]',
        params={"c": LETTERS},
    ),
    Family(
        "keep_containing",
        "w",
        "w",
        ('keep only the words that contain "{c}"', 'drop the words without a "{c}"'),
        '[x for x in w if "{c}" in x]',
        params={"c": LETTERS},
    ),
    Family(
        "sort_words",
        "w",
        "w",
        ("sort the words alphabetically", "put the words in alphabetical order"),
        "sorted(w)",
        rearranges=True,
        ignores_order=True,
    ),
    Family(
        "sort_by_length",
        "w",
        "w",
        (
            "sort the words by length, ties alphabetically",
            "order the words from short to long, equal lengths in alphabetical order",
        ),
        "sorted(w, key=lambda x: (len(x), x))",
        "sorted(w, key=len)",
        rearranges=True,
        ignores_order=True,
    ),
    Family(
        "reverse_words",
        "w",
        "w",
        ("reverse the order of the words", "put the words in the opposite order"),
        "w[::-1]",
        rearranges=True,
    ),
    Family("reverse_each", "w", "w", ("reverse each word", "write every word backwards"), "[x[::-1] for x in w]"),
    Family(
        "capitalize_each",
        "w",
        "w",
        ("make the first letter of each word a capital", "capitalize every word"),
        "[x.capitalize() for x in w]",
    ),
    Family(
        "unique_words",
        "w",
        "w",
        (
            "remove repeated words, keeping the first of each in its place",
            "keep only the first occurrence of each word, order unchanged",
        ),
        "list(dict.fromkeys(w))",
        "sorted(set(w))",
    ),
    Family(
        "first_words",
        "w",
        "w",
        ("keep only the first {k} words", "drop everything after the first {k} words"),
        "w[:{k}]",
        params={"k": span(2, 6)},
    ),
    Family(
        "last_words",
        "w",
        "w",
        ("keep only the last {k} words", "drop everything before the last {k} words"),
        "w[-{k}:]",
        "w[{k}:]",
        params={"k": span(2, 6)},
    ),
    Family(
        "word_lengths",
        "w",
        "a",
        ("the lengths of the words", "the number of letters of each word"),
        "[len(x) for x in w]",
    ),
    Family(
        "joined",
        "w",
        "s",
        ('the words joined by "{c}"', 'the words in one piece with "{c}" between them'),
        '"{c}".join(w)',
        params={"c": tuple("-_+/:.")},
    ),
    Family(
        "initials",
        "w",
        "s",
        ("the first letters of the words, written together", "the initials of the words as one text"),
        '"".join(x[0] for x in w)',
    ),
    Family(
        "longest_word",
        "w",
        "s",
        ("the longest word, the last one if there are several", "the last of the longest words"),
        "max(w[::-1], key=len)",
        "max(w, key=len)",
        domain=some,
    ),
    Family("count_words", "w", "n", ("how many words there are", "the number of words"), "len(w)", ignores_order=True),
    Family(
        "total_length",
        "w",
        "n",
        ("the total number of letters in the words", "how many letters the words have together"),
        "sum(len(x) for x in w)",
        ignores_order=True,
    ),
    Family(
        "most_repeats",
        "w",
        "n",
        ("how often the most frequent word occurs", "the number of times the most common word appears"),
        "max(w.count(x) for x in w)",
        domain=some,
        ignores_order=True,
    ),
)
