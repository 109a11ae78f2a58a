"""One running test: its input and its pipes, its limits, its end. Used by slot.py.

What passes through here lies in buffers that a fork does not inherit, so no test finds another's data in its memory.
"""

import json
import mmap
import os
import select
import struct
import time

import kernel
import program

HEAD = struct.Struct("<BI")
BUFFER_BYTES = 256 * 1024
_STDERR_TAIL = 4096
_RDHUP = 0x2000
_SAMPLE_FIRST_S, _SAMPLE_NEXT_S = 0.1, 0.05
_LOCK_IN_S = 10


class Gone(Exception):
    """Node closed the socket: the job is over."""


def private_buffer(size):
    buffer = mmap.mmap(-1, size)
    buffer.madvise(mmap.MADV_DONTFORK if hasattr(mmap, "MADV_DONTFORK") else 10)
    return memoryview(buffer)


class Feed:
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


class Watch:
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
                if self.slot.locked_in[0] or now >= self.started + _LOCK_IN_S:
                    self.reason = "time-limit"
                    break
                deadline = now + 0.005  # a limit is the program's: it ends nothing before the program starts
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
        if self.output_held == BUFFER_BYTES:
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
        if self.error_held == BUFFER_BYTES:
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
        if self.report_held == BUFFER_BYTES:
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
            if len(code) > HEAD.size and HEAD.unpack_from(code)[1] == len(code) - HEAD.size:
                slot.marshalled = code[HEAD.size :]
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
