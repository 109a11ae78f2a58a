"""Runs a chunk of tests inside one Sandbox Fusion request and hands the outcomes back through a signed file.

Sent as `code`, after a line that defines PROGRAM_SOURCE (python/program.py: what a test does in its process) and after one_test.py. The
job file holds the program, the limits and the inputs of the tests; it never holds what is expected, and nothing here judges.

Four kinds of processes, each forked from the one above it:
  keeper      (this one) holds the signing key and the inputs, collects outcomes, writes the result file last.
  worker      forked before the key and the inputs are read; stays free of every test's data.
  supervisor  one per test: takes its input, enforces its limits, kills what it leaves behind, sends its outcome.
  test        a fresh process in a fresh folder; runs the program once. Its memory is a copy of the supervisor's, so it can find its own
              input there, and nothing of other tests.

A program that kills the processes above it loses its own evidence and nothing else.
Needs nothing outside the standard library; Python 3.8 or later.
"""

import gc
import glob
import json
import os
import resource
import select
import shutil
import struct
import sys
import tempfile
import types
import zlib

JOB_FILE = "whetstone-job.bin"
RESULT_FILE = "whetstone-result.bin"
WORK_FOLDER = os.path.realpath(os.getcwd())
STACK_BYTES = 512 * 1024 * 1024
# A chunk ends early once its outputs reach this, so that the result file stays small enough to fetch.
CHUNK_OUTPUT_BYTES = 8 * 1024 * 1024


def start_over_if_needed():
    """Fixed string hashing, a large stack and a bare environment need a new interpreter, unless this one already has them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    large = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    enough = soft == resource.RLIM_INFINITY or soft >= large
    script = globals().get("__file__")
    if (sys.flags.hash_randomization == 0 and enough) or not script or not os.path.exists(script):
        return
    if os.environ.get("WHETSTONE_LAUNCHED"):
        return
    try:
        resource.setrlimit(resource.RLIMIT_STACK, (large, hard))
    except (OSError, ValueError):
        pass
    environment = dict(bare_environment("/"), WHETSTONE_LAUNCHED="1")
    os.execve(sys.executable, [sys.executable, script], environment)


def process_control(option, value):
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) == 0
    except (ImportError, OSError, AttributeError):
        return False


def set_not_dumpable():
    """Processes of the same user cannot read this one's memory or descriptors."""
    process_control(4, 0)


def set_subreaper():
    """Orphans of a test come to this process instead of leaving it."""
    return process_control(36, 1)


def signature(key, body):
    """HMAC-SHA256. hashlib would load OpenSSL for it, which takes longer than most tests."""
    try:
        from _sha256 import sha256
    except ImportError:
        try:
            from _sha2 import sha256
        except ImportError:
            from hashlib import sha256
    padded = key.ljust(64, b"\0")
    inner = sha256(bytes(byte ^ 0x36 for byte in padded) + body).digest()
    return sha256(bytes(byte ^ 0x5C for byte in padded) + inner).digest()


def shared_entries():
    """What lies in the folders that any program can write to."""
    found = set()
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        try:
            found.update(os.path.join(folder, name) for name in os.listdir(folder))
        except OSError:
            pass
    return found


def remove_leftovers(before, uid):
    """Removes what a test left for the next one. On a server where all requests share /tmp only what is surely this test's: files
    of its own user, or everything where /tmp itself is this request's work folder."""
    private = WORK_FOLDER == "/tmp"
    for path in shared_entries() - before:
        try:
            if private or (uid is not None and os.lstat(path).st_uid == uid):
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    os.unlink(path)
        except OSError:
            pass


def usable_uid():
    """An ordinary user id for the tests when this is root and such a user can still import modules; else None."""
    if os.geteuid() != 0:
        return None
    uid = 20000 + int.from_bytes(os.urandom(2), "little") % 40000
    probe = os.fork()
    if probe == 0:
        try:
            give_up_root(uid)
            os.listdir(os.path.dirname(os.__file__))
            import colorsys  # noqa: F401  not loaded yet: this reads the library as the new user

            os._exit(0)
        except BaseException:
            os._exit(1)
    return uid if os.waitpid(probe, 0)[1] == 0 else None


def write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def framed(message):
    return struct.pack("<Q", len(message)) + message


def send(descriptor, *parts):
    write_all(descriptor, framed(b"".join(parts)))


def receive(descriptor):
    """The next message, or None at the end of the stream."""

    def exactly(count):
        pieces = []
        while count:
            piece = os.read(descriptor, min(count, 1 << 20))
            if not piece:
                return None
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    head = exactly(8)
    return None if head is None else exactly(struct.unpack("<Q", head)[0])


def has_more(descriptor):
    """Waits; True when a message can be read, False when the other side is done. Reads nothing itself."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    while True:
        for _, event in waiting.poll():
            return bool(event & select.POLLIN)


def supervise(program, job, preamble, tests, outcomes, uid, before, spared):
    """Takes one test from the keeper, runs it and sends its outcome. Ends with it, and with every trace of its input and output."""
    set_subreaper()
    test = json.loads(receive(tests).decode("utf-8"))
    outcome, stdout, frame, clean = run_one(program, job, preamble, test, uid, spared + (os.getpid(),))
    remove_leftovers(before, uid)
    outcome["stdoutBytes"], outcome["frameBytes"], outcome["clean"] = len(stdout), len(frame), clean
    head = json.dumps(outcome).encode()
    send(outcomes, struct.pack("<I", len(head)), head, stdout, frame)


def worker_process(tests, outcomes, keeper):
    """Starts a supervisor for each test that the keeper hands over; never returns. Holds no input and no output itself."""
    set_subreaper()
    program = types.ModuleType("whetstone_program")
    exec(compile(PROGRAM_SOURCE, "program.py", "exec"), program.__dict__)
    job = json.loads(receive(tests).decode("utf-8"))
    preamble = program.preamble_names() if job["preamble"] else {}
    if "numpy" in job["source"]:
        # Imported once here instead of in every test's process.
        try:
            import numpy  # noqa: F401
        except BaseException:
            pass
    uid = usable_uid()
    before = shared_entries()
    spared = (keeper, os.getpid())
    # The collector leaves what is there alone, so that forks share its pages; a test turns it on again for its own objects.
    gc.disable()
    gc.freeze()
    while has_more(tests):
        supervisor = os.fork()
        if supervisor == 0:
            try:
                supervise(program, job, preamble, tests, outcomes, uid, before, spared)
                os._exit(0)
            finally:
                os._exit(1)
        status = os.waitpid(supervisor, 0)[1]
        kill_descendants(spared, supervisor)
        if status != 0:
            os._exit(1)
    os._exit(0)


def drive(to_worker, from_worker):
    """Hands over test after test until one fails, the outputs are many, or all are done; returns the worker's messages."""
    with open(JOB_FILE, "rb") as stored:
        job = json.loads(zlib.decompress(stored.read()).decode("utf-8"))
    os.unlink(JOB_FILE)
    tests = job.pop("tests")
    messages = []
    total = 0
    try:
        send(to_worker, json.dumps(job).encode())
        for test in tests:
            send(to_worker, json.dumps(test).encode())
            message = receive(from_worker)
            if message is None:
                break
            messages.append(message)
            total += len(message)
            outcome = json.loads(message[4 : 4 + struct.unpack("<I", message[:4])[0]].decode())
            if outcome["status"] != "finished" or not outcome["clean"] or total > CHUNK_OUTPUT_BYTES:
                break
    except BrokenPipeError:
        pass
    os.close(to_worker)
    return messages


def main():
    start_over_if_needed()
    keeper = os.getpid()
    tests_out, tests_in = os.pipe()
    outcomes_out, outcomes_in = os.pipe()
    worker = os.fork()
    if worker == 0:
        try:
            os.close(tests_in)
            os.close(outcomes_out)
            os.dup2(os.open("/dev/null", os.O_RDWR), 0)
            set_not_dumpable()
            worker_process(tests_out, outcomes_in, keeper)
        except BaseException as error:
            os.write(2, ("worker: %r\n" % (error,)).encode())
        finally:
            os._exit(1)
    set_not_dumpable()
    os.close(tests_out)
    os.close(outcomes_in)
    key = bytes.fromhex(sys.stdin.read().strip())
    messages = drive(tests_in, outcomes_out)
    status = os.waitpid(worker, 0)[1]
    # A program that killed its supervisor left its folder behind.
    for path in glob.glob(os.path.join(tempfile.gettempdir(), folder_prefix(keeper) + "*")):
        shutil.rmtree(path, ignore_errors=True)
    body = struct.pack("<i", status) + b"".join(map(framed, messages))
    try:
        os.unlink(RESULT_FILE)
    except OSError:
        pass
    descriptor = os.open(RESULT_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    write_all(descriptor, signature(key, body) + body)
    os.close(descriptor)
    os._exit(0)


main()
