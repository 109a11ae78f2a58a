"""A line of text in."""

import string

from family import Family, span

LETTERS = tuple(string.ascii_lowercase)


def lower(s):
    return s.isalpha() and s.islower()


FAMILIES = (
    Family("reverse_text", "s", "s", ("reverse the text", "write the text backwards"), "s[::-1]", rearranges=True),
    Family("upper", "s", "s", ("change all letters to upper case", "turn the text into capital letters"), "s.upper()"),
    Family(
        "swap_case",
        "s",
        "s",
        ("swap upper and lower case", "turn small letters into capitals and capitals into small letters"),
        "s.swapcase()",
    ),
    Family(
        "remove_vowels",
        "s",
        "s",
        ("remove all vowels, small and capital", "delete every vowel (a, e, i, o, u in either case)"),
        '"".join(c for c in s if c.lower() not in "aeiou")',
        '"".join(c for c in s if c not in "aeiou")',
    ),
    Family(
        "replace_letter",
        "s",
        "s",
        ('replace every "{c}" by "{d}"', 'change each letter "{c}" to "{d}"'),
        's.replace("{c}", "{d}")',
        params={"c": LETTERS, "d": LETTERS},
    ),
    Family(
        "remove_letter",
        "s",
        "s",
        ('remove every "{c}"', 'delete each letter "{c}"'),
        's.replace("{c}", "")',
        params={"c": LETTERS},
    ),
    Family(
        "repeat_letters",
        "s",
        "s",
        ("write every character {k} times in a row", "repeat each character {k} times"),
        '"".join(c * {k} for c in s)',
        params={"k": span(2, 6)},
    ),
    Family(
        "keep_letters",
        "s",
        "s",
        ("keep only the letters", "remove everything that is not a letter"),
        '"".join(c for c in s if c.isalpha())',
    ),
    Family(
        "head",
        "s",
        "s",
        ("keep only the first {k} characters", "cut the text after {k} characters"),
        "s[:{k}]",
        params={"k": span(2, 12)},
    ),
    Family(
        "tail",
        "s",
        "s",
        ("keep only the last {k} characters", "cut away all but the last {k} characters"),
        "s[-{k}:]",
        "s[{k}:]",
        params={"k": span(2, 12)},
    ),
    Family(
        "shift_letters",
        "s",
        "s",
        (
            "move each letter {k} places on in the alphabet, with a following z",
            "shift every small letter by {k} in the alphabet, going round from z to a",
        ),
        '"".join(chr((ord(c) - 97 + {k}) % 26 + 97) for c in s)',
        params={"k": span(1, 20)},
        domain=lower,
    ),
    Family(
        "sort_letters",
        "s",
        "s",
        ("sort the characters by their code", "put the characters in sorted order"),
        '"".join(sorted(s))',
        rearranges=True,
        ignores_order=True,
    ),
    Family(
        "unique_letters",
        "s",
        "s",
        ("keep only the first of each character", "remove characters that occurred before"),
        '"".join(dict.fromkeys(s))',
    ),
    Family("remove_spaces", "s", "s", ("remove the spaces", "delete all spaces"), 's.replace(" ", "")'),
    Family(
        "count_vowels",
        "s",
        "n",
        ("the number of vowels, small and capital", "how many vowels there are, in either case"),
        'sum(c in "aeiou" for c in s.lower())',
        'sum(c in "aeiou" for c in s)',
        ignores_order=True,
    ),
    Family(
        "count_letter",
        "s",
        "n",
        ('how many times "{c}" occurs', 'the number of letters "{c}"'),
        's.count("{c}")',
        params={"c": LETTERS},
        ignores_order=True,
    ),
    Family(
        "distinct_letters",
        "s",
        "n",
        ("how many different characters there are", "the number of distinct characters"),
        "len(set(s))",
        ignores_order=True,
    ),
    Family(
        "count_digits",
        "s",
        "n",
        ("the number of digits", "how many characters are digits"),
        "sum(c.isdigit() for c in s)",
        ignores_order=True,
    ),
    Family(
        "text_length", "s", "n", ("the number of characters", "the length of the text"), "len(s)", ignores_order=True
    ),
    Family(
        "is_palindrome",
        "s",
        "s",
        (
            "YES if the text reads the same backwards, ignoring case, else NO",
            "YES for a palindrome (upper and lower case count as equal), otherwise NO",
        ),
        '"YES" if s.lower() == s.lower()[::-1] else "NO"',
        '"YES" if s == s[::-1] else "NO"',
        verdict=True,
    ),
    Family(
        "places_of_letter",
        "s",
        "a",
        ('the positions of "{c}", counting from 1', 'at which positions (the first is 1) "{c}" stands'),
        '[i for i, c in enumerate(s, 1) if c == "{c}"]',
        '[i for i, c in enumerate(s) if c == "{c}"]',
        params={"c": LETTERS},
    ),
    Family(
        "digits_in_text",
        "s",
        "a",
        ("the digits in the text as numbers, in order", "every digit that occurs, in order, as a list of numbers"),
        "[int(c) for c in s if c.isdigit()]",
    ),
)
