"""One slot: supervises the tests of one program, then ends. In the jail it is process 1 of its own pid namespace.

It talks to Node over its own socket, forks one process per test, moves bytes under caps, watches wall time and memory, kills everything
that is left and only then asks for the next test. It never judges, and it keeps no payload in memory that a later test inherits:
inputs and outputs pass through buffers that are not inherited by fork.

Messages are a type byte, a 32-bit little-endian length and a payload.
  from Node:  J job (JSON; source and files follow raw)   T test (JSON; its input follows raw)
  to Node:    O stdout   E stderr   F report   X test ended (JSON)   G fetched file (JSON)   D its bytes   P slot failed (text)
"""

import errno
import json
import mmap
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time

import kernel
import program

_HEAD = struct.Struct("<BI")
_BUFFER_BYTES = 256 * 1024
_STDERR_TAIL = 4096
_RDHUP = 0x2000
_REPORT, _CODE = 3, 4  # descriptors of the test process
_SAMPLE_FIRST_S, _SAMPLE_NEXT_S = 0.1, 0.05
_PAGE = mmap.PAGESIZE


class Gone(Exception):
    """Node closed the socket: the job is over."""


def _private_buffer(size):
    buffer = mmap.mmap(-1, size)
    buffer.madvise(mmap.MADV_DONTFORK if hasattr(mmap, "MADV_DONTFORK") else 10)
    return memoryview(buffer)


class Link:
    """The socket to Node."""

    def __init__(self, connection):
        self.socket = connection

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

    def message(self):
        kind, length = _HEAD.unpack(self.receive(_HEAD.size))
        return kind, json.loads(self.receive(length))

    def send(self, *messages):
        """Each message is (type character, bytes-like)."""
        parts = []
        for kind, payload in messages:
            parts.append(_HEAD.pack(ord(kind), len(payload)))
            parts.append(payload)
        total = sum(len(part) for part in parts)
        try:
            sent = self.socket.sendmsg(parts)
            while sent < total:
                parts, sent, total = _rest(parts, sent)
                sent = self.socket.sendmsg(parts)
        except OSError as error:
            if error.errno in (errno.EPIPE, errno.ECONNRESET):
                raise Gone
            raise


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
    """`level` knows how to make a scratch folder and how to lock a process in: see levels.py."""

    def __init__(self, link, level, space):
        self.link = link
        self.level = level
        self.space = space
        self.input = _private_buffer(_BUFFER_BYTES)
        self.output = _private_buffer(_BUFFER_BYTES)
        self.errors = _private_buffer(_BUFFER_BYTES)
        self.tail = _private_buffer(_PAGE)
        self.report = _private_buffer(_BUFFER_BYTES)
        self.locked_in = mmap.mmap(-1, _PAGE)  # shared with the test process until the program starts

    def serve(self):
        kind, job = self.link.message()
        if kind != ord("J"):
            raise ValueError("expected a job")
        self.job = job
        self.source = bytes(self.link.receive(job["sourceBytes"]))
        self.marshalled = None
        if job["mode"] == "execute":
            self._execute()
            return
        while True:
            kind, test = self.link.message()
            self.level.fresh_scratch(job)
            self._run(test)

    # One program as a plain script, with files in and out.

    def _execute(self):
        job = self.job
        self.level.fresh_scratch(job)
        for path, size in job["files"]:
            self._place(path, size)
        _kind, test = self.link.message()
        self._run(test)
        budget = job["fetchBytes"]
        for path in job["fetch"]:
            budget -= self._fetch(path, budget)
        self.link.send(("X", b"{}"))

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
            while size:
                piece = self.input[: min(size, _BUFFER_BYTES)]
                self.link.receive_into(piece)
                size -= len(piece)
                while piece:
                    piece = piece[os.write(opened, piece) :]
        finally:
            os.close(opened)

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
                count = os.readv(opened, [self.output[: min(left, _BUFFER_BYTES)]])
                if count == 0:
                    raise OSError(errno.EIO, "file shrank")
                self.link.send(("D", self.output[:count]))
                left -= count
            return size
        finally:
            os.close(opened)

    # One test.

    def _run(self, test):
        keep_code = self.marshalled is None
        input_read, input_write = os.pipe()
        output_read, output_write = os.pipe()
        error_read, error_write = os.pipe()
        report_read, report_write = os.pipe()
        code_read, code_write = os.pipe() if keep_code else (-1, -1)
        os.set_blocking(input_write, False)
        feed = _Feed(self.link, self.input, input_write, test["inputBytes"])
        feed.advance()
        self.locked_in[0] = 0
        started = time.monotonic()
        child = kernel.fork()
        if child == 0:
            self._child(test, input_read, output_write, error_write, report_write, code_write)
        os.close(input_read)
        os.close(output_write)
        os.close(error_write)
        os.close(report_write)
        if keep_code:
            os.close(code_write)
        watch = _Watch(self, child, started, feed, output_read, error_read, report_read, code_read)
        try:
            watch.until_ended()
            feed.discard_rest()
            watch.send_outcome()
        finally:
            feed.close()
            watch.close()

    def _child(self, test, input_read, output_write, error_write, report_write, code_write):
        try:
            os.setsid()
            os.dup2(input_read, 0)
            os.dup2(output_write, 1)
            os.dup2(error_write, 2)
            os.dup2(report_write, _REPORT, False)
            if code_write >= 0:
                os.dup2(code_write, _CODE, False)
                kernel.close_from(_CODE + 1)
            else:
                kernel.close_from(_CODE)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            filename = os.path.join(self.level.scratch, self.job["name"])
            self._write_script(filename)
            os.chdir(self.level.scratch)
            sys.argv = [filename] + self.job["argv"]
            sys.path[0] = self.level.scratch
            self._limit()
            self.level.lock_in()
            source, marshalled = self.source, self.marshalled
            space = self.space if self.job["preamble"] else {}
            self.locked_in[0] = 1
            self.locked_in.close()
        except BaseException as error:
            try:
                os.write(2, ("%s: %s" % (type(error).__name__, error)).encode())
            finally:
                os._exit(113)
        keep_code = _hand_over_code if code_write >= 0 else None
        program.run_test(test["kind"], source, marshalled, filename, space, _REPORT, keep_code)

    def _write_script(self, filename):
        """Raw calls: this runs once per test."""
        opened = os.open(filename, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        view = memoryview(self.source)
        while view:
            view = view[os.write(opened, view) :]
        os.close(opened)

    def _limit(self):
        limits = self.job["limits"]
        limit = resource.setrlimit
        memory, seconds = limits["memoryBytes"], max(1, -(-limits["cpuMs"] // 1000))
        limit(resource.RLIMIT_AS, (memory, memory))
        limit(resource.RLIMIT_FSIZE, (limits["fileBytes"], limits["fileBytes"]))
        limit(resource.RLIMIT_NOFILE, (limits["openFiles"], limits["openFiles"]))
        limit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        if self.level.counts_processes:
            processes = limits["processes"] + 1  # the slot itself counts
            limit(resource.RLIMIT_NPROC, (processes, processes))


def _hand_over_code(data):
    view = memoryview(_HEAD.pack(0, len(data)) + data)  # the length tells a whole program from one cut off by a kill
    while view:
        view = view[os.write(_CODE, view) :]
    os.close(_CODE)


class _Feed:
    """Moves the test's input from Node to the program as fast as the program reads it."""

    def __init__(self, link, buffer, descriptor, size):
        self.link, self.buffer, self.descriptor, self.left = link, buffer, descriptor, size
        self.pending = buffer[:0]

    def advance(self):
        """Writes until the pipe is full, the reader is gone, or everything went through."""
        while self.descriptor >= 0:
            if not self.pending:
                if not self.left:
                    self.close()
                    return
                self.pending = self.buffer[: min(self.left, len(self.buffer))]
                self.link.receive_into(self.pending)
                self.left -= len(self.pending)
            try:
                self.pending = self.pending[os.write(self.descriptor, self.pending) :]
            except BlockingIOError:
                return
            except BrokenPipeError:
                self.close()

    def discard_rest(self):
        while self.left:
            piece = self.buffer[: min(self.left, len(self.buffer))]
            self.link.receive_into(piece)
            self.left -= len(piece)

    def close(self):
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class _Watch:
    """The running test: pumps its pipes, enforces its limits, ends it."""

    def __init__(self, slot, child, started, feed, output, errors, report, code):
        self.slot, self.child, self.started, self.feed = slot, child, started, feed
        self.output, self.errors, self.report, self.code = output, errors, report, code
        self.limits = slot.job["limits"]
        self.whole_errors = slot.job["mode"] == "execute"
        self.pidfd = kernel.pidfd_open(child)
        self.output_total = self.output_held = 0
        self.error_total = self.error_held = self.tail_held = 0
        self.report_total = self.report_held = 0
        self.code_pieces = []
        self.reason = None
        self.peak_bytes = 0

    def close(self):
        for descriptor in (self.output, self.errors, self.report, self.code, self.pidfd):
            if descriptor >= 0:
                os.close(descriptor)

    def until_ended(self):
        poller = select.poll()
        for descriptor in (self.output, self.errors, self.report, self.pidfd):
            poller.register(descriptor, select.POLLIN)
        if self.code >= 0:
            poller.register(self.code, select.POLLIN)
        poller.register(self.slot.link.socket.fileno(), _RDHUP)
        feeding = self.feed.descriptor
        if feeding >= 0:
            poller.register(feeding, select.POLLOUT)
        deadline = self.started + self.limits["wallMs"] / 1000
        sample_at = self.started + _SAMPLE_FIRST_S
        ended = False
        while not ended and self.reason is None:
            now = time.monotonic()
            if now >= deadline:
                self.reason = "time-limit"
                break
            if now >= sample_at:
                if self.slot.level.over_memory(self):
                    self.reason = "memory-limit"
                    break
                if self.slot.level.over_scratch(self.slot.job):
                    self.reason = "output-limit"
                    break
                sample_at = time.monotonic() + _SAMPLE_NEXT_S
            for descriptor, _events in poller.poll((min(deadline, sample_at) - now) * 1000 + 1):
                if descriptor == self.pidfd:
                    ended = True
                elif descriptor == feeding:
                    self.feed.advance()
                    if self.feed.descriptor < 0:
                        poller.unregister(feeding)
                        feeding = -1
                elif descriptor == self.slot.link.socket.fileno():
                    raise Gone
                elif not self._pump(descriptor):
                    poller.unregister(descriptor)
        self.wall_ms = (time.monotonic() - self.started) * 1000
        self._end()
        if self.reason is None:
            for descriptor in (self.output, self.errors, self.report, self.code):
                while descriptor >= 0 and self.reason is None and self._pump(descriptor):
                    pass

    def _pump(self, descriptor):
        """One read; False at the end of the stream."""
        if descriptor == self.output:
            return self._pump_output()
        if descriptor == self.errors:
            return self._pump_errors()
        if descriptor == self.report:
            return self._pump_report()
        piece = os.read(self.code, 1 << 16)
        self.code_pieces.append(piece)
        return bool(piece)

    def _pump_output(self):
        slot = self.slot
        if self.output_held == _BUFFER_BYTES:
            slot.link.send(("O", slot.output))
            self.output_held = 0
        count = os.readv(self.output, [slot.output[self.output_held :]])
        self.output_total += count
        over = self.output_total - self.limits["outputBytes"]
        if over > 0:
            self.reason = "output-limit"
            self.output_total -= over
            count -= over
        self.output_held += count
        return count > 0

    def _pump_errors(self):
        slot = self.slot
        if not self.whole_errors:
            count = os.readv(self.errors, [slot.errors])
            kept = min(count, _STDERR_TAIL)
            if kept:
                keep_old = min(self.tail_held, _STDERR_TAIL - kept)
                slot.tail[:keep_old] = slot.tail[self.tail_held - keep_old : self.tail_held]
                slot.tail[keep_old : keep_old + kept] = slot.errors[count - kept : count]
                self.tail_held = keep_old + kept
            return count > 0
        if self.error_held == _BUFFER_BYTES:
            slot.link.send(("E", slot.errors))
            self.error_held = 0
        count = os.readv(self.errors, [slot.errors[self.error_held :]])
        self.error_total += count
        over = self.error_total - self.limits["outputBytes"]
        if over > 0:
            self.reason = "output-limit"
            self.error_total -= over
            count -= over
        self.error_held += count
        return count > 0

    def _pump_report(self):
        slot = self.slot
        if self.report_held == _BUFFER_BYTES:
            slot.link.send(("F", slot.report))
            self.report_held = 0
        count = os.readv(self.report, [slot.report[self.report_held :]])
        self.report_total += count
        if self.report_total > program.MAX_FRAME_BYTES + 1:
            self.reason = "output-limit"
            return False
        self.report_held += count
        return count > 0

    def _end(self):
        """Kills whatever is left of the program and reaps all of it."""
        self.slot.level.kill_all(self.child)
        _pid, status, usage = os.wait4(self.child, 0)
        self.slot.level.reap_all()
        self.exit_code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        self.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        self.cpu_ms = (usage.ru_utime + usage.ru_stime) * 1000
        self.rss = max(usage.ru_maxrss * 1024, self.peak_bytes)

    def send_outcome(self):
        slot = self.slot
        locked_in = slot.locked_in[0] == 1
        if self.code >= 0 and locked_in:
            code = b"".join(self.code_pieces)
            if len(code) > _HEAD.size and _HEAD.unpack_from(code)[1] == len(code) - _HEAD.size:
                slot.marshalled = code[_HEAD.size :]
        messages = []
        if self.output_held:
            messages.append(("O", slot.output[: self.output_held]))
        if self.whole_errors:
            if self.error_held:
                messages.append(("E", slot.errors[: self.error_held]))
        elif self.tail_held:
            messages.append(("E", slot.tail[: self.tail_held]))
        if self.report_held:
            messages.append(("F", slot.report[: self.report_held]))
        outcome = {
            "lockedIn": locked_in,
            "exitCode": self.exit_code,
            "signal": self.signal,
            "reason": self.reason,
            "wallMs": self.wall_ms,
            "cpuMs": self.cpu_ms,
            "maxRssBytes": self.rss,
            "errorBytes": self.error_total,
        }
        messages.append(("X", json.dumps(outcome).encode()))
        slot.link.send(*messages)


def connect(path, token, slot_id):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    connection.sendall(token + struct.pack("<I", slot_id))
    return Link(connection)
