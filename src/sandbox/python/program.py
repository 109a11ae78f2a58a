"""Runs one test of one program in the current process. The process is fresh, already locked in, and ends with the test.

Shared by the embedded jail (slot.py imports it) and by the launcher that the Sandbox Fusion client sends (which embeds this text),
so a program means the same everywhere. Needs nothing outside the standard library; Python 3.8 or later.

The report goes to a descriptor of its own, once: `V` + the returned value of a call test (../frame.md), or `S` + a status word.
Whatever a program writes there itself is no more than a guess at the answer: the judge compares values and trusts nothing else.
"""

import _thread
import atexit
import builtins
import gc
import json
import linecache
import marshal
import os
import random
import sys
import threading
import traceback
import types

RECURSION_LIMIT = 600_000
MAX_DEPTH = 200
_TRACEBACK_FRAMES = 40
MAX_FRAME_BYTES = 16 * 1024 * 1024

_STAR_MODULES = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io json typing sys"
).split()

# Programs that use the random module show one of these.
_RANDOM_WORDS = (b"rand", b"shuffle", b"choice", b"sample", b"uniform", b"gauss", b"variate")

# What is used after the program was loaded is taken now: a program that patches these modules breaks only itself.
_write = os.write
_exit = os._exit
_running_threads = _thread._count
_run_exit_functions = atexit._run_exitfuncs
_collect = gc.collect
_quote = json.encoder.encode_basestring_ascii
_issubclass = issubclass
_type = type
_len = len


class ListNode:
    """As LeetCode's harness defines it, for programs that only name it in their hints or build lists of their own."""

    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next


class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val = val
        self.left = left
        self.right = right


ListNode.__module__ = TreeNode.__module__ = "__main__"


def preamble_names():
    """The names contest programs expect without an import; a name that is also a builtin keeps the builtin."""
    names = {}
    modules = {}
    for module_name in _STAR_MODULES:
        module = modules[module_name] = __import__(module_name)
        public = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        for name in public:
            if not hasattr(builtins, name) and hasattr(module, name):
                names[name] = getattr(module, name)
    import dataclasses

    names.update(modules)
    names.update(
        ListNode=ListNode, TreeNode=TreeNode, dataclass=dataclasses.dataclass, field=dataclasses.field, dataclasses=dataclasses
    )
    return names


def compile_program(source, filename):
    """Source bytes to a code object; raises whatever the compiler raises. The low recursion limit keeps the parser off the stack's end."""
    return compile(source, filename, "exec", 0, True)


class Space:
    """The namespace of one program. Filled once, before the fork: a copy per test would touch hundreds of memory pages."""

    def __init__(self, preamble):
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names["__builtins__"] = builtins
        self.preamble = preamble
        self.names.update(self.preamble)
        self.names["__file__"] = None
        self.given = _len(self.names)

    def enter(self, name, filename):
        self.names["__name__"] = name
        self.names["__file__"] = filename
        sys.modules[name] = sys.modules["__main__"] = self.module
        return self.names

    def clear(self):
        """What the program defined goes, oldest first, as at the end of the interpreter: files flush, __del__ runs."""
        names = self.names
        own = [name for name, _ in zip(reversed(names), range(_len(names) - self.given))]
        for name in own[::-1] + ["stdout", "stderr"]:
            if name in names:
                names[name] = None


def _remember_source(source, filename):
    """Tracebacks show source lines although the program may have no file."""
    lines = source.decode("utf-8", "replace").splitlines(True)
    linecache.cache[filename] = (_len(source), None, lines, filename)


def _print_exception(error, source, filename):
    try:
        _remember_source(source, filename)
        trace = error.__traceback__
        trace = trace.tb_next if trace is not None else None  # this file's own frame
        if sys.excepthook is sys.__excepthook__:
            # Hundreds of thousands of frames would take seconds to format.
            last = trace
            for _ in range(_TRACEBACK_FRAMES):
                last = last and last.tb_next
            while last:
                last, trace = last.tb_next, trace.tb_next
            traceback.print_exception(_type(error), error, trace)
        else:
            sys.excepthook(_type(error), error, trace)
    except BaseException:
        pass


def _exit_status(error):
    """What the interpreter makes of SystemExit."""
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    try:
        sys.stderr.write(str(code) + "\n")
    except BaseException:
        pass
    return 1


def _flush(name):
    """As the interpreter does it at its end: False when it fails. A stream that cannot say whether it is closed is not. But one whose buffer was
    taken out has nothing to flush; whoever took the buffer has it."""
    stream = getattr(sys, name, None)
    try:
        if stream is None or stream.closed:
            return True
    except BaseException:
        pass
    try:
        stream.flush()
        return True
    except BaseException as error:
        return _type(error) is ValueError and "detached" in str(error)


def _finish(space, status):
    """Ends the process as the interpreter would (threads, atexit, flush, module teardown) without its slow full teardown."""
    try:
        if _running_threads():  # without one there is nothing to wait for, and the call costs
            threading._shutdown()
    except BaseException:
        pass
    try:
        _run_exit_functions()
    except BaseException:
        pass
    flushed = [_flush("stdout"), _flush("stderr")]
    try:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # streams of the program's own go first
        space.clear()
        _collect()
    except BaseException:
        pass
    _flush("stdout")
    _exit(status if all(flushed) else 120)


def compile_error(error, report):
    """The program does not parse: says so and ends the process."""
    try:
        traceback.print_exception(_type(error), error, None)
        _flush("stderr")
    except BaseException:
        pass
    report_status(report, b"compile-error")
    _exit(1)


def report_status(report, word):
    try:
        _write(report, b"S" + word)
    except OSError:
        pass


def run_script(code, source, filename, space, report):
    """stdin mode: the program is the script, on the real descriptors 0, 1 and 2. Never returns."""
    status = 0
    try:
        exec(code, space.enter("__main__", filename))
    except SystemExit as error:
        status = _exit_status(error)
    except BaseException as error:
        if isinstance(error, MemoryError):
            error.__traceback__ = None  # frees what the frames hold
            report_status(report, b"memory-limit")
        elif isinstance(error, ModuleNotFoundError):
            report_status(report, b"missing-module")
        _print_exception(error, source, filename)
        del error
        status = 1
    _finish(space, status)


class _NotFound(Exception):
    pass


def _target(space, name):
    """The program's own method or function; a name that came with the preamble does not count."""
    missing = _target
    names, preamble = space.names, space.preamble
    solution = names.get("Solution", missing)
    if _issubclass(_type(solution), type) and hasattr(solution, name):
        return getattr(solution(), name)
    own = names.get(name, missing)
    if own is missing or own is preamble.get(name, missing) or not callable(own):
        raise _NotFound
    return own


def run_call(code, source, filename, space, report):
    """call mode: descriptor 0 holds {"function": name, "arguments": [JSON text, …]} and is then at its end. Never returns."""
    pieces = []
    while True:
        piece = os.read(0, 1 << 20)
        if not piece:
            break
        pieces.append(piece)
    try:
        request = json.loads(b"".join(pieces).decode("utf-8", "surrogatepass"))
        name = request["function"]
        arguments = [json.loads(text) for text in request["arguments"]]
    except (ValueError, RecursionError):
        report_status(report, b"bad-arguments")
        _exit(1)
    try:
        exec(code, space.enter("solution", filename))
        value = _target(space, name)(*arguments)
    except _NotFound:
        report_status(report, b"target-not-found")
        _exit(1)
    except SystemExit as error:
        _finish(space, _exit_status(error))  # no frame: no result
    except BaseException as error:
        missing = isinstance(error, ModuleNotFoundError)
        word = b"memory-limit" if isinstance(error, MemoryError) else b"missing-module" if missing else b"runtime-error"
        report_status(report, word)
        _print_exception(error, source, filename)
        _flush("stderr")
        _exit(1)
    try:
        frame = encode(value)
    except BaseException as error:
        report_status(report, b"memory-limit" if isinstance(error, MemoryError) else b"unserialisable")
        _exit(1)
    view = memoryview(b"V" + frame)
    while view:
        view = view[_write(report, view) :]
    _exit(0)


class Unserialisable(Exception):
    pass


def encode(value, limit=MAX_FRAME_BYTES):
    """The tagged tree of ../frame.md as ASCII bytes. Uses the operations of the base classes, so overridden methods have no effect."""
    pieces = []
    _encode(value, pieces, 0, [limit])
    return "".join(pieces).encode("ascii")


def _add(pieces, text, room):
    room[0] -= _len(text)
    if room[0] < 0:
        raise Unserialisable("too large")
    pieces.append(text)


def _encode(value, pieces, depth, room):
    if depth > MAX_DEPTH:
        raise Unserialisable("too deep")
    kind = _type(value)
    if value is None:
        _add(pieces, '["n"]', room)
    elif kind is bool:
        _add(pieces, '["b",true]' if value else '["b",false]', room)
    elif _issubclass(kind, int):
        _add(pieces, '["i","' + int.__repr__(value) + '"]', room)
    elif _issubclass(kind, float):
        _add(pieces, '["f","' + float.__repr__(value) + '"]', room)
    elif _issubclass(kind, str):
        if str.__len__(value) > room[0]:
            raise Unserialisable("too large")
        _add(pieces, '["s",' + _quote(str.__str__(value)) + "]", room)
    elif _issubclass(kind, (list, tuple)):
        items = list.__iter__(value) if _issubclass(kind, list) else tuple.__iter__(value)
        _encode_items(items, pieces, depth, room)
    elif _issubclass(kind, dict):
        _add(pieces, '["d",[', room)
        first = True
        for key, item in dict.items(value):
            _add(pieces, "[" if first else ",[", room)
            first = False
            if key is not None and not _issubclass(_type(key), (int, float, str)):
                raise Unserialisable("dict key")
            _encode(key, pieces, depth + 1, room)
            _add(pieces, ",", room)
            _encode(item, pieces, depth + 1, room)
            _add(pieces, "]", room)
        _add(pieces, "]]", room)
    elif kind in _SEQUENCES:
        _encode_items(iter(value), pieces, depth, room)
    elif kind is bytes or kind is bytearray:
        _encode(bytes(value).decode("utf-8"), pieces, depth, room)
    else:
        _encode_other(value, kind, pieces, depth, room)


def _encode_items(items, pieces, depth, room):
    _add(pieces, '["l",[', room)
    first = True
    for item in items:
        if not first:
            _add(pieces, ",", room)
        first = False
        _encode(item, pieces, depth + 1, room)
    _add(pieces, "]]", room)


# In order, and the same list whoever reads them: what list() makes of them is what was meant. A set has no order, a deque, a generator and
# a coroutine are other things than the list or value that was asked for; these stay refused, as in other harnesses.
_SEQUENCES = (range, map, filter, zip, enumerate, reversed, _type({}.keys()), _type({}.values()), _type({}.items()))


def _encode_other(value, kind, pieces, depth, room):
    """Numbers and arrays of the standard library, which Python compares with plain ones, then numpy's."""
    decimal, fractions, array = (sys.modules.get(name) for name in ("decimal", "fractions", "array"))
    if decimal is not None and _issubclass(kind, decimal.Decimal):
        text = decimal.Decimal.__str__(value).lower().replace("infinity", "inf")
        _add(pieces, '["f",' + _quote(text) + "]", room)
    elif fractions is not None and _issubclass(kind, fractions.Fraction):
        top, bottom = int(value._numerator), int(value._denominator)
        _encode(top if bottom == 1 else int.__truediv__(top, bottom), pieces, depth, room)
    elif array is not None and kind is array.array:
        _encode(array.array.tolist(value), pieces, depth, room)
    else:
        _encode_numpy(value, kind, pieces, depth, room)


def _encode_numpy(value, kind, pieces, depth, room):
    numpy = sys.modules.get("numpy")
    if numpy is not None and _issubclass(kind, numpy.ndarray):
        plain = numpy.ndarray.tolist(value)
    elif numpy is not None and _issubclass(kind, numpy.generic):
        plain = numpy.generic.item(value)
    else:
        raise Unserialisable(kind.__name__)
    if _type(plain) is kind:
        raise Unserialisable(kind.__name__)
    _encode(plain, pieces, depth + 1, room)


def load(source, marshalled, filename, report, keep_code):
    """The code object: compiled now (and handed to keep_code as marshal bytes), or loaded from an earlier test's bytes."""
    if marshalled is not None:
        return marshal.loads(marshalled)
    try:
        code = compile_program(source, filename)
    except BaseException as error:
        compile_error(error, report)
    if keep_code is not None:
        keep_code(marshal.dumps(code))
    return code


def stage(main):
    """Everything starts here, and this is all that a program finds below itself when it looks at its frames. `main` returns a slot in a slot's
    process, whose `serve` returns what _perform takes in a test's process."""
    slot = main()
    main = None
    leave, test = _exit, slot.serve()
    del slot  # it is not freed (kernel.keep), and nothing leads to it
    try:
        _perform(test)
    finally:
        leave(125)  # nothing comes back from there: what escapes is a failure of the program


def _perform(test):
    kind, source, marshalled, filename, space, report, keep_code = test
    test.clear()
    code = load(source, marshalled, filename, report, keep_code)
    del marshalled, keep_code  # they tell which test is the first
    if not isinstance(space, Space):
        space = Space(space)
    for word in _RANDOM_WORDS:
        if source.find(word) >= 0:  # `in` asks for a number first, and makes an error of it
            random.seed()  # a fork shares its parent's state
            break
    gc.enable()
    if space.preamble:
        sys.setrecursionlimit(RECURSION_LIMIT)
    if kind == "call":
        run_call(code, source, filename, space, report)
    run_script(code, source, filename, space, report)


def run_test(kind, source, marshalled, filename, space, report, keep_code=None):
    """Everything after the lock-in: compile, then run as a script or as one call. Never returns.

    `space` is a Space, or the names to make one of: preamble_names(), or an empty dict.
    """
    _perform([kind, source, marshalled, filename, space, report, keep_code])
