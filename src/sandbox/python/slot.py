"""One slot: supervises the tests of one program, then ends. In the jail it is process 1 of its own pid namespace.

It talks to Node over its own socket, forks one process per test, moves bytes under caps, watches wall time and memory, kills everything
that is left and only then asks for the next test. It never judges, and it keeps no payload in memory that a later test inherits:
inputs and outputs pass through buffers that are not inherited by fork.

Messages are a type byte, a 32-bit little-endian length and a payload.
  from Node:  J job (JSON; source and files follow raw)   T test (packed: "s" or "c", the length of its input, which follows raw)
              C go on (the test before did not end well; a T comes first)
  to Node:    O stdout   E stderr   F report   X test ended (packed, see running.py)   Y all ended   G fetched file (JSON)   D its bytes   H alive   P slot failed (text)
"""

import _signal
import _socket
import errno
import json
import mmap
import os
import resource
import stat
import struct
import sys
import time

import kernel
import program
import waits
from running import BUFFER_BYTES, HEAD, Gone, Watch, private_buffers

_TEST_MESSAGE = struct.Struct("<BIcQ")

_read_json = json.JSONDecoder().scan_once  # what json.loads does around it touches many pages
_REPORT, _CODE = 3, 5  # descriptors of the test process; between them lies what it is held by (levels.py)
_DOOR = _CODE  # no process of another language hands over code
_PENDING_SIGNALS = 512


class Link:
    """The socket to Node."""

    def __init__(self, connection):
        self.socket = connection
        self.blocked_s = 0  # spent in sends: a Node that is slow to read is not the program's time

    def receive_into(self, view):
        while view:
            count = self.socket.recv_into(view)
            if count == 0:
                raise Gone
            view = view[count:]

    def receive(self, count):
        data = bytearray(count)
        self.receive_into(memoryview(data))
        return data

    def job(self):
        kind, length = HEAD.unpack(self.receive(HEAD.size))
        if kind != ord("J"):
            raise ValueError("expected a job")
        return _read_json(self.receive(length).decode(), 0)[0]

    def test(self):
        """The kind of the next test, and how long its input is."""
        kind, _length, mode, size = _TEST_MESSAGE.unpack(self.receive(_TEST_MESSAGE.size))
        if kind != ord("T"):
            raise ValueError("expected a test")
        return "call" if mode == b"c" else "stdin", size

    def go_on(self):
        kind, _length = HEAD.unpack(self.receive(HEAD.size))
        if kind != ord("C"):
            raise ValueError("expected to be told to go on")

    def send(self, *messages):
        """Each message is (type character, bytes-like)."""
        parts, total = [], 0
        for kind, payload in messages:
            parts += (HEAD.pack(ord(kind), len(payload)), payload)
            total += HEAD.size + len(payload)
        started = time.monotonic()
        try:
            sent = self.socket.sendmsg(parts)
            while sent < total:
                parts, sent, total = _rest(parts, sent)
                sent = self.socket.sendmsg(parts)
        except OSError as error:
            if error.errno in (errno.EPIPE, errno.ECONNRESET):
                raise Gone
            raise
        finally:
            self.blocked_s += time.monotonic() - started


def _rest(parts, sent):
    left = []
    for part in parts:
        if sent >= len(part):
            sent -= len(part)
        else:
            left.append(memoryview(part)[sent:])
            sent = 0
    return left, 0, sum(len(part) for part in left)


class Slot:
    """`level` knows how to make a scratch folder and how to lock a process in (levels.py), `cgroup` bounds memory (cgroups.py)."""

    def __init__(self, link, level, space, cgroup):
        self.link = link
        self.cgroup = cgroup
        self.level = level
        self.space = space
        self.input, self.output, self.errors, self.report, self.tail = private_buffers(4 * [BUFFER_BYTES] + [mmap.PAGESIZE])
        self.locked_in = mmap.mmap(-1, mmap.PAGESIZE)  # shared with the test process until the program starts

    def serve(self):
        """Runs tests until Node closes the socket, then ends this process. Returns in a test's process only: what program.stage begins with."""
        try:
            return self._serve()
        except Gone:
            end(self.level, self.link)
        except BaseException as error:
            end(self.level, self.link, error)

    def _serve(self):
        self.job = job = self.link.job()
        self.cgroup.bound(job["limits"])
        self.source = bytes(self.link.receive(job["sourceBytes"]))
        self.marshalled = None
        self.process = job["process"]  # null: a fork of this one
        self._limit()
        self.watch = Watch(self)
        kernel.keep(self, program.Space)
        if job["mode"] == "execute":
            return self._execute()
        while True:
            kind, size = self.link.test()
            self.level.fresh_scratch(job, size + (0 if self.process is None else len(self.source)))
            test = self._run(kind, size)
            if test is not None:
                return test

    # One program as a plain script, with files in and out.

    def _execute(self):
        job = self.job
        self.level.fresh_scratch(job, job["inputBytes"])
        for path, size in job["files"]:
            self._place(path, size)
        test = self._run(*self.link.test())
        if test is not None:
            return test
        budget = job["fetchBytes"]
        for path in job["fetch"]:
            budget -= self._fetch(path, budget)
        self.link.send(("Y", b""))
        raise Gone

    def _open_below(self, path, flags, create_folders):
        parts = path.split("/")
        folder = os.open(self.level.scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                if create_folders:
                    try:
                        os.mkdir(part, 0o755, dir_fd=folder)
                    except FileExistsError:
                        pass
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                os.close(folder)
                folder = below
            return os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o644, dir_fd=folder)
        finally:
            os.close(folder)

    def _place(self, path, size):
        opened = self._open_below(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, True)
        try:
            self._receive_into_file(opened, size)
        finally:
            os.close(opened)

    def _receive_into_file(self, descriptor, size):
        while size:
            piece = self.input[: min(size, BUFFER_BYTES)]
            self.link.receive_into(piece)
            _write_all(descriptor, piece)
            size -= len(piece)

    def _fetch(self, path, budget):
        """Every process of the program is dead by now, so what is looked at cannot change."""
        try:
            opened = self._open_below(path, os.O_RDONLY, False)
        except OSError:
            return 0
        try:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode):
                return 0
            size = status.st_size
            if size > budget:
                self.link.send(("G", json.dumps({"path": path, "leftOut": True, "bytes": 0}).encode()))
                return 0
            self.link.send(("G", json.dumps({"path": path, "leftOut": False, "bytes": size}).encode()))
            left = size
            while left:
                count = os.readv(opened, [self.output[: min(left, BUFFER_BYTES)]])
                if count == 0:
                    raise OSError(errno.EIO, "file shrank")
                self.link.send(("D", self.output[:count]))
                left -= count
            return size
        finally:
            os.close(opened)

    # One test.

    def _run(self, kind, size):
        """None, or in the test's process what serve() returns. All that can be is done before the fork: a page that is written to while two
        processes have it is copied."""
        keep_code = self.marshalled is None and self.job["keepCode"]
        input_read = self._input(size)
        if not self.watch.ended_well:
            self.link.go_on()
        filename = "%s/%s" % (self.level.scratch, self.job["name"])
        self._write_script(filename)
        sys.argv = [filename]
        output_read, output_write = os.pipe()
        error_read, error_write = os.pipe()
        report_read, report_write = os.pipe()
        code_read, code_write = os.pipe() if keep_code else (-1, -1)
        self.locked_in[0] = 0
        self.level.shuffle_pids()
        door = -1
        if self.process is not None:
            self.watch.waits, door = waits.open_door()
        ends = (input_read, output_write, error_write, report_write, code_write, door)  # those of the test's process
        watch = self.watch
        watch.prepare(output_read, error_read, report_read, code_read)
        self.level.order.first()
        child = kernel.fork()
        if child == 0:
            return self._child(kind, filename, *ends)
        try:
            self.level.order.later()
            watch.begin(child)
            for descriptor in ends:
                if descriptor >= 0:
                    os.close(descriptor)
            watch.until_ended()
            watch.send_outcome()
        finally:
            watch.close()

    def _input(self, size):
        """The test's input as a file at its start, open for reading: it has a size, can be mapped and read again."""
        writing, reading = self.level.input_file()
        self._receive_into_file(writing, size)
        return self.level.seal_input(writing, reading)

    def _child(self, kind, filename, input_read, output_write, error_write, report_write, code_write, door):
        try:
            os.setsid()
            os.dup2(input_read, 0)
            os.dup2(output_write, 1)
            os.dup2(error_write, 2)
            os.dup2(report_write, _REPORT, self.process is not None)  # what is executed instead of this keeps it
            if code_write >= 0:
                os.dup2(code_write, _CODE, False)
            if door >= 0:
                os.dup2(door, _DOOR, False)
            kernel.close_from(_CODE if code_write < 0 and door < 0 else _CODE + 1)
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)  # not before: its supervisor would hear what the program sends it
            sys.path[0] = self.level.scratch  # not before: its supervisor imports nothing from there
            for which, most in self.limits:
                resource.setrlimit(which, most)
            if self.process is not None:
                self._prepare_process(kind)
            self.level.lock_in(_DOOR if door >= 0 else -1)
            self._limit_memory()
            self.locked_in[0] = 1
            if self.process is not None:
                self._become_process()
            self.locked_in.close()
        except BaseException as error:
            try:
                self.locked_in[0] = 0  # the program has not begun
                os.write(2, ("%s: %s" % (type(error).__name__, error)).encode())
            finally:
                os._exit(113)
        keep_code = _hand_over_code if code_write >= 0 else None
        space = self.space if self.job["preamble"] else {}
        return [kind, self.source, self.marshalled, filename, space, _REPORT, keep_code]

    def _prepare_process(self, kind):
        """A process of another language than Python: it starts as it would anywhere, and only a call has a place to report to."""
        process = self.process
        if kind != "call":
            os.close(_REPORT)
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
            _signal.signal(number, _signal.SIG_DFL)
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        stack = process["stackBytes"] if hard == resource.RLIM_INFINITY else min(process["stackBytes"], hard)
        resource.setrlimit(resource.RLIMIT_STACK, (stack, hard))
        os.environ.update(process["environment"])

    def _become_process(self):
        """What cannot be executed is a file that a compiler was made to write: the program ends as one that fails."""
        command = self.process["command"]
        try:
            os.execv(command[0], command)
        except OSError as error:
            os.write(2, ("%s: %s" % (command[0], error)).encode())
            os._exit(126)

    def _write_script(self, filename):
        """Raw calls: this runs once per test."""
        self._write_file(filename, self.source, 0o644 if self.process is None else 0o755)
        for name, text in self.job["beside"]:
            self._write_file("%s/%s" % (self.level.scratch, name), text.encode(), 0o644)

    def _write_file(self, path, content, mode):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        _write_all(opened, content)
        os.close(opened)

    def _limit(self):
        """What can be is set here, for all tests; the rest is for the processes of tests."""
        limits = self.job["limits"]
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (_PENDING_SIGNALS, _PENDING_SIGNALS))  # shared by all processes of a user
        if self.level.counts_processes:
            processes = limits["processes"] + 1  # the slot itself counts
            resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        seconds = max(1, -(-limits["cpuMs"] // 1000))
        self.limits = (
            (resource.RLIMIT_FSIZE, (limits["fileBytes"], limits["fileBytes"])),
            (resource.RLIMIT_NOFILE, (limits["openFiles"], limits["openFiles"])),
            (resource.RLIMIT_CPU, (seconds, seconds + 1)),
        )

    def _limit_memory(self):
        """Last: with too little memory for a Python at all, it is the program that fails, not the lock-in."""
        memory = self.job["limits"]["memoryBytes"] + (self.process["addressBytes"] if self.process is not None else 0)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _hand_over_code(data):
    _write_all(_CODE, HEAD.pack(0, len(data)) + data)  # the length tells a whole program from one cut off by a kill
    os.close(_CODE)


def end(level, link, error=None):
    """Ends this process; what went wrong goes to Node, or to stderr before there is a link."""
    try:
        if error is not None:
            message = ("%s: %s" % (type(error).__name__, error)).encode()
            if link is None:
                os.write(2, message + b"\n")
            else:
                link.send(("P", message))
    except BaseException:
        pass
    try:
        level.remove_scratch()
    finally:
        os._exit(0 if error is None else 1)


def connect(path, token, slot_id):
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(path)
    connection.sendall(token + struct.pack("<I", slot_id))
    return Link(connection)
