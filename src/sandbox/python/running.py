"""One running test: its pipes, its limits, its end. Used by slot.py.

What passes through here lies in buffers that a fork does not inherit, so no test finds another's data in its memory. No read here can block: a
program can open its own ends of these pipes again and take bytes out from under a poll.
"""

import mmap
import os
import select
import struct
import time

import accounts
import kernel
import program
import waits

HEAD = struct.Struct("<BI")
BUFFER_BYTES = 256 * 1024
_STDERR_TAIL = 4096
_CODE_BYTES = 64 * 1024 * 1024
_RDHUP = 0x2000
_SAMPLE_FIRST_S, _SAMPLE_NEXT_S = 0.1, 0.05
_LOCK_IN_S = 10
_SIGN_OF_LIFE_S = 2
# A busy machine may stretch a test's wall time by what it waited for a processor, up to this.
_STRETCH, _STRETCH_S = 4, 5
# Most programs are short: for this long only their end is waited for; one that fills a pipe goes on after it.
_ENDING_MS = 5
_END, _EMPTY, _MORE = 0, 1, 2
# How a test ended: locked in, exit code and signal (-1: none), reason, wall, waiting and processor milliseconds, memory.
_ENDED = struct.Struct("<?iiBdddQ")
_REASONS = (None, "time-limit", "memory-limit", "output-limit", "runtime-error")


class Gone(Exception):
    """Node closed the socket: the job is over."""


def private_buffers(sizes):
    buffer = mmap.mmap(-1, sum(sizes))
    buffer.madvise(mmap.MADV_DONTFORK if hasattr(mmap, "MADV_DONTFORK") else 10)
    kernel.keep(buffer)  # a test's process lets go of it, and has something else at its address
    whole, end = memoryview(buffer), 0
    for size in sizes:
        yield whole[end : end + size]
        end += size


class _Stream:
    """What a pipe brings and Node gets whole, up to a limit."""

    __slots__ = "kind buffer limit descriptor total held".split()

    def __init__(self, kind, buffer, limit):
        self.kind, self.buffer, self.limit = kind, buffer, limit

    def begin(self, descriptor):
        self.descriptor = descriptor
        self.total = self.held = 0


class Watch:
    """Watches the running test: pumps its pipes, enforces its limits, ends it. One per slot, which a test's process never frees (kernel.keep)."""

    # A dictionary would show itself to the garbage collector again when it changes.
    __slots__ = (
        "slot limits whole_errors child pidfd output errors report code streams tail_held code_total code_pieces marked reason note "
        "peak_bytes tree_cpu_ms orphans_ms waited_s sends_before poller started wall_ms exit_code signal cpu_ms rss ended_well waits"
    ).split()

    def __init__(self, slot):
        self.slot = slot
        self.limits = slot.job["limits"]
        self.whole_errors = slot.job["mode"] == "execute"
        most = self.limits["outputBytes"]
        errors = (_Stream("E", slot.errors, most),) if self.whole_errors else ()
        self.streams = (_Stream("O", slot.output, most), _Stream("F", slot.report, program.MAX_FRAME_BYTES + 1), *errors)
        self.ended_well = True  # the test before
        self.waits = waits.nobody
        self.code_pieces = []
        self.marked = set()  # processes that go before this one when memory runs out

    def prepare(self, output, errors, report, code):
        """Before the fork."""
        self.child = self.pidfd = -1
        self.output, self.errors, self.report, self.code = output, errors, report, code
        for descriptor in self._pipes():
            os.set_blocking(descriptor, False)
        for stream, descriptor in zip(self.streams, (output, report, errors)):
            stream.begin(descriptor)
        self.tail_held = self.code_total = 0
        self.code_pieces.clear()
        self.marked.clear()
        self.reason = None
        self.note = b""
        self.peak_bytes = 0
        self.tree_cpu_ms = self.orphans_ms = 0
        self.waited_s = 0
        self.sends_before = self.slot.link.blocked_s
        self.poller = select.poll()
        self.poller.register(self.slot.link.socket.fileno(), _RDHUP)
        self.started = time.monotonic()

    def begin(self, child):
        self.child = child
        self.pidfd = kernel.pidfd_open(child)

    def _pipes(self):
        return [descriptor for descriptor in (self.output, self.errors, self.report, self.code) if descriptor >= 0]

    def close(self):
        for descriptor in self._pipes():
            os.close(descriptor)
        if self.pidfd >= 0:
            os.close(self.pidfd)
        self.waits.close()

    def until_ended(self):
        poller = self.poller
        poller.register(self.pidfd, select.POLLIN)
        for descriptor, _events in poller.poll(_ENDING_MS):
            if descriptor == self.pidfd:
                self._over(True)
                return
        for descriptor in self._pipes():
            poller.register(descriptor, select.POLLIN)
        self.waits.begin(poller)
        self._over(self._look_on(poller))

    def _look_on(self, poller):
        """True when it has ended by itself; else there is a reason to end it."""
        ended = False
        wall = self.limits["wallMs"] / 1000
        last = self.started + _STRETCH * wall + _STRETCH_S
        deadline = self.started + wall
        sample_at = self.started + _SAMPLE_FIRST_S
        sign_at = self.started + _SIGN_OF_LIFE_S
        while not ended and self.reason is None:
            now = time.monotonic()
            for descriptor, events in poller.poll(max(0, (min(deadline, sample_at, self.waits.answer_at) - now) * 1000 + 1)):
                if descriptor == self.pidfd:
                    ended = True  # before any limit is looked at: a program that has ended is late only by its own clock
                elif descriptor == self.slot.link.socket.fileno():
                    raise Gone
                elif self.waits.is_asked(descriptor, events):
                    continue
                elif self._pump(descriptor) == _END:
                    poller.unregister(descriptor)
            if ended or self.reason is not None:
                break
            now = time.monotonic()
            if now >= deadline:
                deadline = self._later(now, wall, last)
                if self.reason is not None:
                    break
            if now >= sample_at:
                self.slot.level.look_at(self)
                if self.slot.process is not None:  # the first thread of Python is there to the end
                    self._note_waiting()
                if self.slot.cgroup.exceeded():
                    self.reason = "memory-limit"
                sample_at = time.monotonic() + _SAMPLE_NEXT_S
            if now >= sign_at:
                self.slot.link.send(("H", b""))
                sign_at = now + _SIGN_OF_LIFE_S
            self.waits.answer(now)
        return ended

    def _over(self, ended):
        self._note_waiting()
        self.wall_ms = max(0, time.monotonic() - self.started - self._excused()) * 1000
        self._end(ended)
        if self.reason is None:
            for descriptor in self._pipes():
                while self.reason is None and self._pump(descriptor) == _MORE:
                    pass

    def _later(self, now, wall, last):
        """The wall limit has come. What the program could not help is given back; else the test ends."""
        if not self.slot.locked_in[0]:
            if now >= self.started + _LOCK_IN_S:
                self.reason = "time-limit"
            return now + 0.005  # a limit is the program's: it ends nothing before the program starts
        self._note_waiting()
        deadline = min(self.started + wall + self._excused(), last)
        if now >= deadline:
            self.reason = "time-limit"
        return deadline + 0.001

    def _note_waiting(self):
        """What a thread waited for a processor, the longest: a program's work need not be the first thread's. What others of the program used
        meanwhile may be what it waited for. A thread that has ended is not there any more, so this is asked now and then."""
        if time.monotonic() - self.started > _SAMPLE_FIRST_S:  # a short test cannot have waited long
            threads = list(accounts.ran_and_waited_s(self.child))
            used = self.slot.level.used_ms(self) / 1000
            self.waited_s = max([self.waited_s, *(waited - max(0, used - ran) for ran, waited in threads)])

    def _excused(self):
        """Waiting for a processor, and for Node to take bytes, is not the program's time."""
        return self.waited_s + self.slot.link.blocked_s - self.sends_before

    def _pump(self, descriptor):
        """One read."""
        try:
            count = self._take(descriptor)
        except BlockingIOError:
            return _EMPTY
        return _MORE if count > 0 else _END

    def _take(self, descriptor):
        for stream in self.streams:
            if stream.descriptor == descriptor:
                return self._take_stream(stream)
        return self._take_code() if descriptor == self.code else self._take_tail()

    def _take_stream(self, stream):
        if stream.held == BUFFER_BYTES:
            self.slot.link.send((stream.kind, stream.buffer))
            stream.held = 0
        count = os.readv(stream.descriptor, [stream.buffer[stream.held :]])
        stream.total += count
        over = stream.total - stream.limit
        if over > 0:
            self.reason = "output-limit"
            stream.total -= over
            count -= over
        stream.held += count
        return count

    def _take_tail(self):
        """Of stderr the end is kept."""
        slot = self.slot
        count = os.readv(self.errors, [slot.errors])
        kept = min(count, _STDERR_TAIL)
        if kept:
            keep_old = min(self.tail_held, _STDERR_TAIL - kept)
            slot.tail[:keep_old] = slot.tail[self.tail_held - keep_old : self.tail_held]
            slot.tail[keep_old : keep_old + kept] = slot.errors[count - kept : count]
            self.tail_held = keep_old + kept
        return count

    def _take_code(self):
        piece = os.read(self.code, 1 << 16)
        self.code_total += len(piece)
        if self.code_total > _CODE_BYTES:
            self.reason = "memory-limit"
            return 0
        self.code_pieces.append(piece)
        return len(piece)

    def _end(self, ended):
        """Kills whatever is left of the program and reaps all of it."""
        if not ended:
            self.slot.level.kill_all(self.child)
        _pid, status, usage = os.wait4(self.child, 0)
        self.slot.level.reap_all()
        # A short test that ended well cannot have used much; of a longer one, a process may have been killed and the program gone on.
        if (status != 0 or self.wall_ms > _SAMPLE_FIRST_S * 1000) and self.slot.cgroup.exceeded():
            self.reason = "memory-limit"
        self.exit_code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        self.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        self.cpu_ms = max((usage.ru_utime + usage.ru_stime) * 1000, self.tree_cpu_ms)
        self.rss = max(usage.ru_maxrss * 1024, self.peak_bytes)

    def send_outcome(self):
        slot = self.slot
        locked_in = slot.locked_in[0] == 1
        if self.code >= 0 and locked_in:
            code = b"".join(self.code_pieces)
            if len(code) > HEAD.size and HEAD.unpack_from(code)[1] == len(code) - HEAD.size:
                slot.marshalled = code[HEAD.size :]
        messages = [(stream.kind, stream.buffer[: stream.held]) for stream in self.streams if stream.held]
        if self.tail_held:
            messages.append(("E", slot.tail[: self.tail_held]))
        if self.note:
            messages.append(("E", self.note))
        outcome = _ENDED.pack(
            locked_in,
            -1 if self.exit_code is None else self.exit_code,
            -1 if self.signal is None else self.signal,
            _REASONS.index(self.reason),
            self.wall_ms,
            self._excused() * 1000,
            self.cpu_ms,
            self.rss,
        )
        self.ended_well = self.exit_code == 0 and self.reason is None
        messages.append(("X", outcome))
        slot.link.send(*messages)
