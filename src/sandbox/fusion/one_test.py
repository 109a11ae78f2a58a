"""Runs one test in a process of its own, under its limits, and says how it ended. Part of the launcher's text: launcher.ts puts this file in
front of launcher.py.
"""

import fcntl
import io
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from itertools import chain

STDERR_TAIL = 4096
FRAME_BYTES = 16 * 1024 * 1024 + 1
REPORT = 3
FEW_PIDS, HIGHEST_PID = 1 << 16, 1 << 22
SWEEP_S = 10
LATE = 1.5
NAMED_STATUSES = "compile-error runtime-error memory-limit bad-arguments target-not-found unserialisable missing-module".split()


def bare_environment(home):
    return {
        "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
        "HOME": home,
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONINTMAXSTRDIGITS": "50000",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def limit_resources(limits):
    def lower(which, value, hard_extra=0):
        hard = resource.getrlimit(which)[1]
        top = value + hard_extra if hard == resource.RLIM_INFINITY else min(value + hard_extra, hard)
        try:
            resource.setrlimit(which, (min(value, top), top))
        except (OSError, ValueError):
            pass

    lower(resource.RLIMIT_AS, limits["memoryBytes"])
    lower(resource.RLIMIT_CPU, max(1, -(-limits["cpuMs"] // 1000)), 1)
    lower(resource.RLIMIT_FSIZE, limits["fileBytes"])
    lower(resource.RLIMIT_NOFILE, limits["openFiles"])
    lower(resource.RLIMIT_NPROC, limits["processes"])
    lower(resource.RLIMIT_CORE, 0)


def give_up_root(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def test_process(program, job, preamble, kind, folder, uid, stdin, stdout, stderr, report):
    """Everything a test's process does; never returns."""
    try:
        os.setsid()
        try:
            os.setpgid(0, 0)  # some sandboxes grant no session
        except OSError:
            pass
        # Moved out of the way first: one of them may sit where another belongs.
        moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 64) for descriptor in (stdin, stdout, stderr, report)]
        for target, descriptor in enumerate(moved):
            os.dup2(descriptor, target)
        os.closerange(4, 4096)
        os.set_inheritable(REPORT, False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL if number != signal.SIGPIPE else signal.SIG_IGN)
        os.chdir(folder)
        limit_resources(job["limits"])
        if uid is not None:
            give_up_root(uid)
        os.environ.clear()
        os.environ.update(bare_environment(folder))
        sys.path[:] = [folder] + [path for path in sys.path[1:] if path]
        sys.stdin = sys.__stdin__ = io.open(0, "r", encoding="utf-8", errors="surrogateescape", closefd=False)
        sys.stdout = sys.__stdout__ = io.open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
        sys.stderr = sys.__stderr__ = io.open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        source = job["source"].encode("utf-8", "surrogatepass")
        filename = os.path.join(folder, job["name"])
        with open(filename, "wb") as script:  # programs read themselves, and processes they spawn import them
            script.write(source)
        sys.argv[:] = [filename]
        program.run_test(kind, source, None, filename, preamble, REPORT)
    finally:
        os._exit(125)


class Capture:
    """Reads a pipe up to a cap; keeps the head, or the tail."""

    def __init__(self, descriptor, cap, tail=False):
        self.descriptor = descriptor
        self.cap = cap
        self.tail = tail
        self.pieces = []
        self.size = 0
        self.over = False
        os.set_blocking(descriptor, False)

    def read(self):
        """False at the end of the stream."""
        try:
            piece = os.read(self.descriptor, 1 << 18)
        except BlockingIOError:
            return True
        if not piece:
            return False
        self.pieces.append(piece)
        self.size += len(piece)
        if self.size > self.cap:
            if self.tail:
                self.pieces = [b"".join(self.pieces)[-self.cap :]]
                self.size = len(self.pieces[0])
            else:
                self.over = True
        return True

    def bytes(self):
        data = b"".join(self.pieces)
        return data[-self.cap :] if self.tail else data[: self.cap]


def read_some(waiting, streams, patience_ms):
    """What the streams have now or within the time; those at their end go."""
    for descriptor, _ in waiting.poll(patience_ms):
        if descriptor in streams and not streams[descriptor].read():
            waiting.unregister(descriptor)
            del streams[descriptor]


def children_of(parent):
    """Direct children by the process list; None where there is no process list."""
    try:
        with open("/proc/self/task/%d/children" % parent) as listing:
            return [int(word) for word in listing.read().split()]
    except OSError:
        pass
    found = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    if not any(name.isdigit() for name in names):
        return None
    for name in names:
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as status:
                    if int(status.read().rsplit(b")", 1)[1].split()[1]) == parent:
                        found.append(int(name))
            except (OSError, IndexError, ValueError):
                pass
    return found


def numbers_to_sweep(sweep, group, probe):
    """Where a test's processes are, without a list of processes. Numbers are given out in order, and start again at the low ones. A program
    that lets them run once around has processes below its own number too; it can where there are few (32,768 by default)."""
    if sweep < 3:
        return range(group, probe) if probe > group else chain(range(group, HIGHEST_PID), range(2, probe))
    return chain(range(max(2, group - FEW_PIDS), group), range(2, FEW_PIDS))


def kill_descendants(spared, group):
    """Kills and reaps every process that a test left; True when none is left."""
    me = os.getpid()
    until = time.monotonic() + SWEEP_S
    for sweep in range(200):
        if time.monotonic() > until:
            break
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        victims = children_of(me)
        if victims is None:
            probe = os.fork()
            if probe == 0:
                os._exit(0)
            os.waitpid(probe, 0)
            victims = (number for number in numbers_to_sweep(sweep, group, probe) if number not in spared)
        for number in victims:
            try:
                os.kill(number, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.005)
    return False


def folder_prefix(keeper):
    """Working folders of one request's tests start so; whoever lives longest can clean up."""
    return "test-%d-" % keeper


def run_one(program, job, preamble, test, uid, spared):
    """One test from start to end; returns (outcome, stdout, frame, clean)."""
    limits = job["limits"]
    folder = tempfile.mkdtemp(prefix=folder_prefix(spared[0]))
    if uid is not None:
        os.chown(folder, uid, uid)
    if test["kind"] == "stdin":
        text = test["stdin"].encode("utf-8", "surrogatepass")
    else:
        text = json.dumps({"function": test["functionName"], "arguments": test["argumentsJson"]}).encode()
    stdin = tempfile.TemporaryFile()
    stdin.write(text)
    stdin.flush()
    stdin.seek(0)
    os.fchmod(stdin.fileno(), 0o666)
    pipes = [os.pipe() for _ in range(3)]
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        (_, out), (_, err), (_, rep) = pipes
        test_process(program, job, preamble, test["kind"], folder, uid, stdin.fileno(), out, err, rep)
    stdin.close()
    for _, writing in pipes:
        os.close(writing)
    stdout = Capture(pipes[0][0], limits["outputBytes"])
    stderr = Capture(pipes[1][0], STDERR_TAIL, tail=True)
    report = Capture(pipes[2][0], FRAME_BYTES)
    deadline = started + limits["wallMs"] / 1000
    waiting = select.poll()
    streams = {stream.descriptor: stream for stream in (stdout, stderr, report)}
    for descriptor in streams:
        waiting.register(descriptor, select.POLLIN | select.POLLHUP)
    reason, ended, usage = None, None, None
    while True:
        number, status, used = os.wait4(child, os.WNOHANG)
        if number:
            ended, usage = status, used
            break
        left = deadline - time.monotonic()
        if left <= 0:
            reason = "time-limit"
            break
        if stdout.over:
            reason = "output-limit"
            break
        read_some(waiting, streams, min(left * 1000, 5 if streams else 1) + 1)
    wall_ms = (time.monotonic() - started) * 1000
    if ended is None:
        try:
            os.kill(child, signal.SIGKILL)
        except OSError:
            pass
        _, ended, usage = os.wait4(child, 0)
    clean = kill_descendants(spared, child)
    together = resource.getrusage(resource.RUSAGE_CHILDREN)  # this process has had no others
    cpu_ms = (together.ru_utime + together.ru_stime) * 1000
    # A program that can stop this process, or keeps it from a processor, is late when it ends; on a busy machine this process may be, too.
    if reason is None and (cpu_ms > limits["cpuMs"] or wall_ms > LATE * limits["wallMs"]):
        reason = "time-limit"
    # What was written before the end is still in the pipes.
    until = time.monotonic() + 2
    while streams and time.monotonic() < until:
        read_some(waiting, streams, 50)
        if stdout.over:
            break
    if stdout.over and reason is None:
        reason = "output-limit"
    for stream in (stdout, stderr, report):
        os.close(stream.descriptor)
    shutil.rmtree(folder, ignore_errors=True)
    exit_code = os.WEXITSTATUS(ended) if os.WIFEXITED(ended) else None
    killed_by = os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else None
    status, frame = status_of(test["kind"], reason, exit_code, killed_by, report.bytes())
    outcome = {
        "status": status,
        "exitCode": exit_code,
        "signal": killed_by,
        "wallMs": wall_ms,
        "cpuMs": cpu_ms,
        "maxRssBytes": usage.ru_maxrss * 1024,
        "stderrTail": stderr.bytes().decode("utf-8", "replace"),
    }
    return outcome, (stdout.bytes() if status == "finished" and test["kind"] == "stdin" else b""), frame, clean


def status_of(kind, reason, exit_code, killed_by, report):
    if reason is not None:
        return reason, b""
    if killed_by == signal.SIGXCPU:
        return "time-limit", b""
    if report[:1] == b"S":
        word = report[1:].decode("ascii", "replace")
        if word in NAMED_STATUSES:
            return word, b""
    if kind == "call":
        if len(report) >= FRAME_BYTES:
            return "output-limit", b""
        if report[:1] == b"V":
            return "finished", report[1:]
        return ("no-result" if exit_code == 0 else "runtime-error" if killed_by is None else "no-result"), b""
    return ("finished" if exit_code == 0 else "runtime-error"), b""
