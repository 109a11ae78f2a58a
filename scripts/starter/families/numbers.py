"""One or two integers in."""

from family import Family, span


def small(n):
    return 1 <= n <= 60


def natural(n):
    return 0 <= n < 10**9


FAMILIES = (
    Family(
        "digit_sum",
        "n",
        "n",
        ("the sum of the digits of n", "what the digits of n add up to", "the digit sum of n"),
        "sum(map(int, str(n)))",
        domain=natural,
    ),
    Family(
        "reverse_digits",
        "n",
        "n",
        ("the number you get by writing the digits of n backwards", "n with its digits reversed"),
        "int(str(n)[::-1])",
        domain=natural,
    ),
    Family(
        "count_divisors",
        "n",
        "n",
        (
            "the number of divisors of n",
            "how many positive integers divide n",
            "the count of divisors of n, 1 and n included",
        ),
        "sum(n % i == 0 for i in range(1, n + 1))",
        "sum(n % i == 0 for i in range(1, n))",
        domain=small,
    ),
    Family(
        "triangular",
        "n",
        "n",
        ("the sum of all integers from 1 to n", "1 + 2 + ... + n", "the total of the first n positive integers"),
        "sum(range(n + 1))",
        "sum(range(n))",
        domain=lambda n: 0 <= n <= 500,
    ),
    Family(
        "power",
        "n",
        "n",
        ("n to the power {k}", "n raised to the power of {k}"),
        "n ** {k}",
        params={"k": span(2, 9)},
        domain=lambda n: 0 <= n <= 40,
    ),
    Family(
        "binary_ones",
        "n",
        "n",
        (
            "the number of ones in the binary form of n",
            "how many bits of n are 1",
            "the count of 1 digits when n is written in binary",
        ),
        'bin(n).count("1")',
        domain=natural,
    ),
    Family(
        "largest_digit",
        "n",
        "n",
        ("the largest digit of n", "the biggest digit in n"),
        "max(map(int, str(n)))",
        domain=natural,
    ),
    Family(
        "round_down",
        "n",
        "n",
        ("n rounded down to a multiple of {k}", "the largest multiple of {k} that is not above n"),
        "n // {k} * {k}",
        params={"k": span(3, 30)},
        domain=natural,
    ),
    Family(
        "is_prime",
        "n",
        "s",
        ("YES if n is prime and NO if not", "YES when n is a prime number, otherwise NO"),
        '"YES" if n > 1 and all(n % i for i in range(2, n)) else "NO"',
        '"YES" if all(n % i for i in range(2, n)) else "NO"',
        domain=lambda n: 0 <= n <= 200,
        verdict=True,
    ),
    Family(
        "divisors",
        "n",
        "a",
        (
            "the divisors of n in ascending order",
            "all positive integers that divide n, smallest first",
            "every divisor of n in increasing order",
        ),
        "[i for i in range(1, n + 1) if n % i == 0]",
        "[i for i in range(1, n) if n % i == 0]",
        domain=small,
    ),
    Family(
        "digits",
        "n",
        "a",
        ("the digits of n from left to right", "the decimal digits of n in order"),
        "list(map(int, str(n)))",
        domain=natural,
    ),
    Family(
        "multiples_up_to",
        "n",
        "a",
        (
            "the positive multiples of {k} up to n, n included if it is one",
            "every multiple of {k} from {k} to n inclusive",
        ),
        "list(range({k}, n + 1, {k}))",
        "list(range({k}, n, {k}))",
        params={"k": span(2, 9)},
        domain=small,
    ),
    Family(
        "primes_up_to",
        "n",
        "a",
        ("the primes up to n, n included if it is prime", "all prime numbers not greater than n, in ascending order"),
        "[i for i in range(2, n + 1) if all(i % j for j in range(2, i))]",
        "[i for i in range(2, n) if all(i % j for j in range(2, i))]",
        domain=small,
    ),
    Family(
        "countdown",
        "n",
        "a",
        ("the integers from n down to 1", "n, n - 1, and so on down to 1"),
        "list(range(n, 0, -1))",
        domain=lambda n: 1 <= n <= 15,
    ),
    Family(
        "between",
        "nm",
        "a",
        ("the integers from n to m, both included", "every integer from n up to and including m"),
        "list(range(n, m + 1))",
        "list(range(n, m))",
        domain=lambda nm: nm[0] <= nm[1] <= nm[0] + 12,
    ),
    Family(
        "last_digit_of_product",
        "nm",
        "n",
        ("the last digit of n times m", "the final digit of the product of n and m"),
        "n * m % 10",
    ),
    Family("distance", "nm", "n", ("the distance between n and m", "how far apart n and m are"), "abs(n - m)"),
)
