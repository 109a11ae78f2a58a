"""Runs a program against tests inside this process: quick, and no sandbox.

For reference solutions, and for programs of our own small model on a machine that holds nothing else.
"""

import builtins
import contextlib
import io
import json
import signal
import sys


class TimeLimit(BaseException):
    pass


def _expired(signum, frame):
    raise TimeLimit


def outputs_match(expected: str, printed: str) -> bool:
    """Same tokens on the same non-blank lines."""

    def tokens(text: str) -> list[list[str]]:
        return [line.split() for line in text.split("\n") if line.split()]

    return tokens(expected) == tokens(printed)


def run_program(program, stdin: str) -> str:
    source, printed = io.StringIO(stdin), io.StringIO()
    names = {"__name__": "__main__", "input": lambda prompt="": _line(source)}
    with contextlib.redirect_stdout(printed):
        exec(program, names)
    return printed.getvalue()


def _line(source: io.StringIO) -> str:
    line = source.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def passes(code: str, function: str, tests: list[dict], seconds: float = 1.0) -> bool:
    """Whether the code gives the expected output on every test."""
    recursion = sys.getrecursionlimit()
    signal.signal(signal.SIGALRM, _expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        program = compile(code, "program.py", "exec")
        for test in tests:
            if test["testtype"] == "stdin":
                if not outputs_match(test["output"], run_program(program, test["input"])):
                    return False
                continue
            names = {"__name__": "solution", "input": _no_input}
            with contextlib.redirect_stdout(io.StringIO()):
                exec(program, names)
                value = names[function](*map(json.loads, test["input"].split("\n")))
            if json.loads(json.dumps(value)) != json.loads(test["output"]):
                return False
        return True
    except (Exception, TimeLimit, SystemExit, builtins.KeyboardInterrupt):
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.setrecursionlimit(recursion)


def _no_input(prompt=""):
    raise EOFError
