"""Integers in, solved by a function that calls itself."""

from family import Family

FAMILIES = (
    Family(
        "factorial",
        "n",
        "n",
        ("the factorial of n", "n! (the product of all integers from 1 to n)"),
        "f(n)",
        helper="def f(n):\n    return 1 if n < 2 else n * f(n - 1)",
        domain=lambda n: 0 <= n <= 12,
    ),
    Family(
        "fibonacci",
        "n",
        "n",
        (
            "the n-th Fibonacci number (0, 1, 1, 2, 3, 5, ... with n = 0 giving 0)",
            "Fibonacci number n, where F(0) = 0 and F(1) = 1",
        ),
        "f(n)",
        helper="def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)",
        domain=lambda n: 0 <= n <= 16,
    ),
    Family(
        "gcd",
        "nm",
        "n",
        ("the greatest common divisor of n and m", "the largest integer that divides both n and m"),
        "f(n, m)",
        helper="def f(n, m):\n    return n if m == 0 else f(m, n % m)",
        domain=lambda nm: min(nm) >= 1,
    ),
    Family(
        "digital_root",
        "n",
        "n",
        (
            "the one-digit number you reach by adding up the digits of n again and again",
            "the digital root of n (repeat the digit sum until one digit is left)",
        ),
        "f(n)",
        helper="def f(n):\n    return n if n < 10 else f(sum(map(int, str(n))))",
        domain=lambda n: 0 <= n < 10**9,
    ),
    Family(
        "halvings",
        "n",
        "n",
        (
            "how many times n must be halved, rounding down, to reach 0",
            "the number of halvings (rounded down) that bring n to 0",
        ),
        "f(n)",
        helper="def f(n):\n    return 0 if n < 1 else 1 + f(n // 2)",
        domain=lambda n: 0 <= n < 10**9,
    ),
    Family(
        "hanoi",
        "n",
        "n",
        (
            "the number of moves the tower of Hanoi takes with n discs",
            "how many moves solve the tower of Hanoi with n discs",
        ),
        "f(n)",
        helper="def f(n):\n    return 0 if n < 1 else 2 * f(n - 1) + 1",
        domain=lambda n: 0 <= n <= 20,
    ),
    Family(
        "stairs",
        "n",
        "n",
        (
            "in how many ways n stairs can be climbed with steps of 1 or 2",
            "the number of ways to climb n stairs, taking 1 or 2 at a time",
        ),
        "f(n)",
        helper="def f(n):\n    return 1 if n < 2 else f(n - 1) + f(n - 2)",
        domain=lambda n: 0 <= n <= 16,
    ),
)
