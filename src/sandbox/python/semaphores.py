"""Semaphores between processes that wait by asking: a program's processes cannot sleep on memory they share, because programs that know nothing
of each other share the pages of the same files. Locks between threads are not concerned."""

import threading
import time

_FIRST_S, _LONGEST_S = 0.00005, 0.002


def install(processes):
    """`multiprocessing` makes all its locks, queues and pools of this one class. Without processes it needs nothing that could be shared."""
    try:
        import _multiprocessing

        base = _multiprocessing.SemLock
    except (ImportError, AttributeError):
        return
    made = _asking(base) if processes else _between_threads(base)
    made.__module__ = base.__module__
    made.__qualname__ = made.__name__ = "SemLock"
    _multiprocessing.SemLock = made


def _asking(base):
    sleep, monotonic = time.sleep, time.monotonic

    class SemLock(base):
        def acquire(self, block=True, timeout=None):
            """Acquire the semaphore/lock."""
            if base.acquire(self, False):
                return True
            if not block:
                return False
            until = None if timeout is None else monotonic() + max(0, timeout)
            pause = _FIRST_S
            while True:
                left = pause if until is None else until - monotonic()
                if left <= 0:
                    return False
                sleep(min(pause, left))
                if base.acquire(self, False):
                    return True
                pause = min(pause * 2, _LONGEST_S)

        def __enter__(self):
            return self.acquire()

    return SemLock


def _between_threads(base):
    """For thread pools, which make a queue between processes and use it between threads."""

    class SemLock:
        SEM_VALUE_MAX = base.SEM_VALUE_MAX

        def __init__(self, kind, value, maxvalue, _name, _unlink=True):
            self.kind, self.maxvalue, self.name, self.handle = kind, maxvalue, None, 0
            self._value, self._owner, self._held = value, None, 0
            self._changed = threading.Condition(threading.Lock())

        def acquire(self, block=True, timeout=None):
            """Acquire the semaphore/lock."""
            me = threading.get_ident()
            with self._changed:
                if self.kind == 0 and self._owner == me:  # a lock that its owner may take again
                    self._held += 1
                    return True
                if not self._value and not block:
                    return False
                if not self._changed.wait_for(lambda: self._value > 0, timeout):
                    return False
                self._value -= 1
                self._owner, self._held = me, self._held + 1
                return True

        def release(self):
            """Release the semaphore/lock."""
            with self._changed:
                if self.kind == 0 and self._owner != threading.get_ident():
                    raise AssertionError("attempt to release recursive lock not owned by thread")
                if self.kind == 0 and self._held > 1:
                    self._held -= 1
                    return
                if self._value >= self.maxvalue:
                    raise ValueError("semaphore or lock released too many times")
                self._value += 1
                self._held -= 1
                self._owner = None if self.kind == 0 else self._owner
                self._changed.notify()

        def __enter__(self):
            return self.acquire()

        def __exit__(self, *_error):
            self.release()

        def _count(self):
            return self._held

        def _is_mine(self):
            return self._held > 0 and self._owner == threading.get_ident()

        def _get_value(self):
            return self._value

        def _is_zero(self):
            return self._value == 0

        def _after_fork(self):
            self._held = 0

    return SemLock
