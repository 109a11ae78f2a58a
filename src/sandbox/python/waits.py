"""Answers a program that waits for what another process could change (seccomp.py): first at once, then later and later, that it has changed. Threads
are joined that way, and whoever joins one asks again until it has ended.

The kernel asks here through a descriptor that a test's process makes and hands over before its program begins. What comes through it are numbers of the
kernel's own, and no answer lets a call through.
"""

import _socket
import errno
import fcntl
import os
import select
import struct
import time

import kernel
import seccomp

_TAKE, _ANSWER = 0xC0502100, 0xC0182101
_ASKED = struct.Struct("<QI28xQQQ24x")  # its number, the thread; the call's place in memory, operation and value
_SAID = struct.Struct("<QqiI")
_LONGEST_S = 0.004
_REMEMBERED = 256
_filter = kernel.Filter(*seccomp.asking())


class _Nobody:
    """Nothing is asked: Python's threads wait for nothing that other processes could change."""

    answer_at = float("inf")

    def begin(self, poller):
        pass

    def is_asked(self, descriptor, events):
        return False

    def answer(self, now):
        pass

    def close(self):
        pass


nobody = _Nobody()


def open_door():
    """What answers for one test, and the descriptor by which its process hands over what it asks through."""
    own, other = _socket.socketpair()
    return _Waits(own), other.detach()


def handed_over(door):
    """In a test's process, before its last filter. False: nobody listens, and waits come back at once."""
    if door < 0:
        return False
    try:
        listener = _filter.listen()
    except OSError:
        return False
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, door)
    connection.sendmsg([b"L"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener))])
    connection.detach()
    return True


class _Waits:
    def __init__(self, door):
        self.answer_at = float("inf")
        self._door = door
        self._listener = -1
        self._asking = []
        self._before = {}  # what a thread asked last, and how often

    def begin(self, poller):
        self._poller = poller
        poller.register(self._door.fileno(), select.POLLIN)

    def is_asked(self, descriptor, events):
        """Takes what is there, of the descriptors that belong here."""
        if descriptor == self._listener:
            if events & select.POLLIN:
                self._take()
            else:
                self._poller.unregister(descriptor)  # nobody is left to ask, and taking would wait for somebody
        elif descriptor == self._door.fileno():
            self._enter()
        else:
            return False
        return True

    def _enter(self):
        _data, ancillary, _flags, _address = self._door.recvmsg(1, _socket.CMSG_LEN(4), _socket.MSG_CMSG_CLOEXEC)
        self._poller.unregister(self._door.fileno())
        for _level, _kind, payload in ancillary:
            self._listener = struct.unpack("i", payload)[0]
            self._poller.register(self._listener, select.POLLIN)

    def _take(self):
        asked = bytearray(_ASKED.size)
        try:
            fcntl.ioctl(self._listener, _TAKE, asked, True)
        except OSError:
            return  # it was ended meanwhile, or a signal came first
        number, thread, *question = _ASKED.unpack(asked)
        before, times = self._before.get(thread, (None, 0))
        times = times + 1 if question == before else 0
        if len(self._before) >= _REMEMBERED:
            self._before.clear()
        self._before[thread] = (question, times)
        pause = min(_LONGEST_S, times * 0.001)
        self._asking.append((time.monotonic() + pause, number))
        self.answer_at = min(self.answer_at, self._asking[-1][0])

    def answer(self, now):
        if now < self.answer_at:
            return
        for at, number in self._asking:
            if at <= now:
                try:
                    fcntl.ioctl(self._listener, _ANSWER, bytearray(_SAID.pack(number, 0, -errno.EAGAIN, 0)), True)
                except OSError:
                    pass  # a signal came first
        self._asking = [(at, number) for at, number in self._asking if at > now]
        self.answer_at = min((at for at, _number in self._asking), default=float("inf"))

    def close(self):
        self._door.close()
        if self._listener >= 0:
            os.close(self._listener)
