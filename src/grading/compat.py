"""The old way to grade, for comparisons only: judge, expected outputs and program share one process, and the exit status decides.

Every program can end this process with status 0 and be called right. It exists to measure against results that were graded so.
"""

import io
import json
import os
import signal
import sys


class Late(Exception):
    pass


def late(_number, _frame):
    raise Late


def run_stdin(code, test):
    kept = sys.stdin, sys.stdout
    sys.stdin, sys.stdout = io.StringIO(test["input"]), io.StringIO()
    try:
        exec(code, {"__name__": "__main__"})
    except SystemExit:
        pass
    finally:
        printed = sys.stdout.getvalue()
        sys.stdin, sys.stdout = kept
    lines = [[line.strip() for line in text.strip().split("\n")] for text in (printed, test["output"])]
    return lines[0] == lines[1]


def run_call(code, test):
    space = {"__name__": "solution"}
    exec(code, space)
    owner = space["Solution"]() if "Solution" in space else None
    target = getattr(owner, test["fn_name"]) if owner is not None else space[test["fn_name"]]
    value = target(*[json.loads(line) for line in test["arguments"]])
    if isinstance(value, tuple):
        value = list(value)
    return value == json.loads(test["output"])


def main():
    with open("test_cases.txt") as stored:
        request = json.load(stored)
    with open("program.txt") as stored:
        code = compile(stored.read(), "program", "exec")
    signal.signal(signal.SIGALRM, late)
    results = []
    for test in request["tests"]:
        signal.alarm(request["timeout"])
        try:
            results.append(run_call(code, test) if "fn_name" in test else run_stdin(code, test))
        except Exception as error:
            print(type(error).__name__, error)
            results.append(False)
        signal.alarm(0)
        if results[-1] is not True:
            break
    sys.exit(0 if all(result is True for result in results) else 255)


main()
