"""One part of judging by a suite's own check, in a process of its own; what to do comes through stdin as JSON.

record  the suite's reference and check together: which calls the check makes, and what the reference gives
calls   the program alone, on those calls: what it gives. It sees no check and no expected value
replay  the check alone, on what the program gave: whether it holds. No line of the program is in this process
inside  program and check in one process, as the official harnesses have it: for checks that look at more than returned values

Values cross as tagged trees of plain data: of a value of any other type only its name and whether it is true.
"""

import builtins
import io
import json
import os
import random
import signal
import sys
import time
import types

DEPTH = 150


def encode(value, depth=0):
    kind = type(value)
    if depth > DEPTH:
        raise RecursionError("a value is nested too deeply")
    inner = depth + 1
    if value is None:
        return ["n"]
    if kind is bool:
        return ["b", 1 if value else 0]
    if issubclass(kind, int):
        return ["i", "%x" % int.__int__(value)]
    if issubclass(kind, float):
        return ["f", float.__repr__(value)]
    if issubclass(kind, complex):
        return ["c", complex.__repr__(value)]
    if issubclass(kind, str):
        return ["s", str.__str__(value)]
    if issubclass(kind, (bytes, bytearray)):
        return ["y", bytes(value).decode("latin-1"), issubclass(kind, bytearray)]
    if issubclass(kind, list):
        return ["l", [encode(item, inner) for item in list.__iter__(value)]]
    if issubclass(kind, tuple):
        return ["t", [encode(item, inner) for item in tuple.__iter__(value)]]
    if issubclass(kind, (set, frozenset)):
        # In an order that every process has.
        items = [encode(item, inner) for item in (set if issubclass(kind, set) else frozenset).__iter__(value)]
        return ["S" if issubclass(kind, set) else "F", sorted(items, key=json.dumps)]
    if issubclass(kind, dict):
        return ["d", [[encode(key, inner), encode(item, inner)] for key, item in dict.items(value)]]
    if getattr(kind, "__module__", "") == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return encode(value.item(), inner)
    return ["o", kind.__name__, bool(value)]


class Opaque:
    """A value that is no plain data: equal to nothing."""

    def __init__(self, name, truth):
        self.name, self.truth = name, truth

    def __bool__(self):
        return self.truth

    def __repr__(self):
        return "<a value of type %s>" % self.name


def decode(tree):
    tag = tree[0]
    if tag == "n":
        return None
    if tag == "b":
        return bool(tree[1])
    if tag == "i":
        return int(tree[1], 16)
    if tag == "f":
        return float(tree[1])
    if tag == "c":
        return complex(tree[1])
    if tag == "s":
        return tree[1]
    if tag == "y":
        return (bytearray if tree[2] else bytes)(tree[1].encode("latin-1"))
    if tag == "d":
        return {decode(key): decode(item) for key, item in tree[1]}
    if tag == "o":
        return Opaque(tree[1], tree[2])
    return {"l": list, "t": tuple, "S": set, "F": frozenset}[tag](map(decode, tree[1]))


def has_opaque(tree):
    if tree[0] == "o":
        return True
    return tree[0] in "ltSFd" and '["o", ' in json.dumps(tree)


class Late(BaseException):
    pass


class Diverged(BaseException):
    pass


class Silent(io.StringIO):
    """As the official harness has it: what is printed is dropped, and nothing can be read."""

    def write(self, text):
        return len(text)

    def read(self, *_):
        raise OSError

    readline = readlines = read

    def readable(self):
        return False


def quietly():
    """The descriptor for the one answer; printing goes nowhere from now on."""
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdin = sys.stdout = sys.stderr = Silent()
    sys.setrecursionlimit(1000)
    return out


def describe(error):
    return [type(error).__name__, str(error)[:500]]


def load(source):
    names = {}
    exec(compile(source, "program.py", "exec"), names)
    return names


def run_check(job, own, candidate_of):
    """Runs the check over stand-ins for the functions; the reference's other names are there, as the program's are in the harness."""
    stand_ins = {name: candidate_of(name) for name in job["entries"]}
    names = {**own, **stand_ins}
    random.seed(0)
    exec(compile(job["test"], "check.py", "exec"), names)
    if job["check"]:
        names["check"](stand_ins[job["entries"][0]])


def record(job):
    own = load(job["program"])
    if not job["entries"]:
        job["entries"] = [n for n, v in own.items() if isinstance(v, types.FunctionType) and n in job["test"]]
    calls, values, seconds = [], [], []

    def candidate_of(name):
        def candidate(*args, **kwargs):
            call = [name, encode(args), encode(kwargs)]
            calls.append(call)
            if not has_opaque(call[1]) and not has_opaque(call[2]):
                args, kwargs = decode(call[1]), decode(call[2])
            state = random.getstate()
            start = time.perf_counter()
            value = own[name](*args, **kwargs)
            seconds.append(time.perf_counter() - start)
            random.setstate(state)
            values.append(encode(value))
            return value if has_opaque(values[-1]) else decode(values[-1])

        return candidate

    try:
        run_check(job, own, candidate_of)
        error = None
    except BaseException as raised:
        error = describe(raised)
    opaque = any(has_opaque(tree) for _, *trees in calls for tree in trees) or any(map(has_opaque, values))
    return {"entries": job["entries"], "calls": calls, "values": values, "seconds": seconds, "error": error, "opaque": opaque}


def calls(job):
    outcomes = []
    try:
        own = load(job["program"])
        targets = {name: own.get(name) for name, _, _ in job["calls"]}
    except BaseException as raised:
        return {"loading": describe(raised), "outcomes": []}
    missing = [name for name, target in targets.items() if target is None]
    if missing:
        return {"missing": missing[0], "outcomes": []}

    def ring(*_):
        raise Late

    # Of the processor and not of the clock: on a busy machine a program waits for it. Zero is no limit of its own.
    signal.signal(signal.SIGPROF, ring)
    for (name, args, kwargs), limit in zip(job["calls"], job["limits"]):
        try:
            signal.setitimer(signal.ITIMER_PROF, limit)
            value = targets[name](*decode(args), **decode(kwargs))
            signal.setitimer(signal.ITIMER_PROF, 0)
            outcomes.append(["v", encode(value)])
        except Late:
            outcomes.append(["late"])
            break
        except BaseException as raised:
            signal.setitimer(signal.ITIMER_PROF, 0)
            outcomes.append(["r", *describe(raised)])
    return {"outcomes": outcomes}


def raised_again(name, text):
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, BaseException):
        try:
            return kind(text)
        except TypeError:
            pass
    return Exception("%s: %s" % (name, text))


def replay(job):
    own = load(job["program"])
    asked = []

    def candidate_of(name):
        def candidate(*args, **kwargs):
            call = [name, encode(args), encode(kwargs)]
            at = len(asked)
            if at < len(job["calls"]) and call == job["calls"][at]:
                asked.append(call)
            elif call in asked:
                # The message of an assert that failed asks once more.
                at = asked.index(call)
            else:
                raise Diverged
            if at >= len(job["outcomes"]):
                raise Late
            tag, *rest = job["outcomes"][at]
            if tag == "v":
                return decode(rest[0])
            raise Late if tag == "late" else raised_again(*rest)

        return candidate

    try:
        run_check(job, own, candidate_of)
        return {"held": True, "asked": len(asked)}
    except BaseException as raised:
        return {"held": False, "asked": len(asked), "error": describe(raised)}


def inside(job):
    if not job["unittest"]:
        names = load(job["program"] + "\n" + job["test"])
        if job["check"]:
            names["check"](names[job["entries"][0]])
        return {"held": True}
    import unittest

    module = types.ModuleType("__test__")
    given = {"__builtins__": builtins, "__file__": "__test__.py", "__package__": None, "__doc__": None}
    module.__dict__.update({**given, "sys": sys, "os": os, "environ": os.environ})
    exec(compile(job["program"] + "\n" + job["test"], "__test__.py", "exec"), module.__dict__)
    sys.modules["__test__"] = module
    result = unittest.TestResult()
    unittest.TestLoader().loadTestsFromTestCase(module.TestCases).run(result)
    failed = result.failures + result.errors
    if not failed:
        return {"held": True}
    test, trace = failed[0]
    return {"held": False, "error": [test.id().split(".")[-1], trace.strip().split("\n")[-1][:500]]}


def main():
    job = json.loads(sys.stdin.buffer.read())
    out = quietly()
    write = os.write
    quote = json.dumps
    try:
        answer = {"record": record, "calls": calls, "replay": replay, "inside": inside}[job["what"]](job)
    except BaseException as raised:
        answer = {"failed": describe(raised)}
    left = quote(answer).encode()
    while left:
        left = left[write(out, left) :]


main()
