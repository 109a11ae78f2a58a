"""A warm interpreter that does nothing but fork slots. It reads fixed-size commands, so no program's text ever reaches it.

Descriptor 3 is the control socket. First Node sends the configuration and gets an answer, both messages of type W (see slot.py) with JSON.
Then a command is a letter and a slot number, and a notice is a message with a slot number and a value:
  from Node:  F fork a slot   K kill a slot   A are you there
  to Node:    E slot could not start (errno)   D slot failed (wait status)   A yes
"""

import _signal
import gc
import importlib.util
import json
import os
import select
import signal
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import accounts  # noqa: E402
import cgroups  # noqa: E402
import kernel  # noqa: E402
import levels  # noqa: E402
import program  # noqa: E402
import seccomp  # noqa: E402
import semaphores  # noqa: E402
import slot  # noqa: E402

_COMMAND = struct.Struct("<cI")
_NOTICE = struct.Struct("<Ii")
_THREAD_STACK = 8 * 1024 * 1024
_WARM = "array contextlib dataclasses decimal enum fractions numbers queue time types cmath struct".split()
_WARM_PROGRAM = """
import sys, math
from collections import defaultdict, deque, Counter
from typing import List
class Solution:
    def solve(self, n: int, rows: List[int]) -> int:
        seen = {k: v for k, v in enumerate(rows) if v % 2 == 0}
        try:
            while n > 0 and rows:
                n -= 1
                total = sum(x * y for x, y in zip(rows, rows[1:]))
        except (ValueError, KeyError) as error:
            raise RuntimeError(f"{error!r:>10}") from error
        return total if total else max(seen.values(), default=0)
def main():
    data = sys.stdin.read().split()
    heap = sorted(map(int, data), key=lambda x: -x)
    print(*heap, sep="\\n", end="")
if __name__ == "__main__":
    main()
"""


class Zygote:
    def __init__(self):
        os.environ.pop("LD_BIND_NOW", None)  # has done what it is for (outer.ts)
        self.control = _high(3)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (3, 4, 5):  # kept busy: the test process has its report, its rules and its code there
            os.dup2(null, descriptor)
        self.config = json.loads(self._read(slot.HEAD.unpack(self._read(slot.HEAD.size))[1]))
        self.pids = {}
        self.cgroups = cgroups.there(self.config["cgroups"])
        self.free_cgroups = list(range(self.cgroups))
        self.cgroup_of = {}

    def _read(self, count):
        data = b""
        while len(data) < count:
            piece = os.read(self.control, count - len(data))
            if not piece:
                os._exit(0)
            data += piece
        return data

    def warm(self):
        _find_packages()
        for name in _WARM + self.config["preload"]:
            try:
                __import__(name)
            except ImportError:
                pass
        semaphores.install(self.config["level"] == "jail")
        self.space = program.Space(program.preamble_names())
        for _ in range(3):
            compile(_WARM_PROGRAM, "warm", "exec")
        self.level = levels.Jail(self.config) if self.config["level"] == "jail" else levels.Confined(self.config)
        kernel.set_thread_stack(_THREAD_STACK)
        kernel.no_new_privileges()
        kernel.Filter(*seccomp.allow_list()).install()
        for name in ("accounts", "cgroups", "kernel", "levels", "program", "running", "seccomp", "semaphores", "slot", "waits"):
            sys.modules.pop(name, None)  # a program's own `import program` must not find these
        sys.path.pop(0)
        sys.setrecursionlimit(1000)
        kernel.keep(self, program.Space)
        gc.collect()
        gc.freeze()
        gc.disable()
        self.level.base_bytes = accounts.own_bytes("self")  # what every process has from here

    def greet(self):
        about = {
            "slowPackages": [name for name in self.config["slow"] if importlib.util.find_spec(name) is not None],
            "landlock": kernel.landlock_version(),
            "cgroups": self.cgroups,
        }
        data = json.dumps(about).encode()
        self._send(b"W", data)

    def serve(self):
        """Returns in the process of a new slot only, with the slot."""
        wake_read, wake_write = os.pipe()
        self.wake = (wake_read, wake_write)
        os.set_blocking(wake_write, False)
        os.set_blocking(wake_read, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        poller.register(wake_read, select.POLLIN)
        while True:
            for descriptor, _events in poller.poll():
                if descriptor == wake_read:
                    try:
                        os.read(wake_read, 4096)
                    except BlockingIOError:
                        pass
                    self._reap()
                else:
                    letter, slot_id = _COMMAND.unpack(self._read(_COMMAND.size))
                    if letter == b"F":
                        new = self._start(slot_id)
                        if new is not None:
                            return new
                    elif letter == b"A":
                        self._notify(b"A", slot_id, 0)
                    elif slot_id in self.pids:
                        os.kill(self.pids[slot_id], signal.SIGKILL)

    def _notify(self, letter, slot_id, value):
        self._send(letter, _NOTICE.pack(slot_id, value))

    def _send(self, letter, payload):
        os.write(self.control, slot.HEAD.pack(ord(letter), len(payload)) + payload)

    def _reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for slot_id, known in self.pids.items():
                if known == pid:
                    del self.pids[slot_id]
                    self._give_back(self.cgroup_of.pop(slot_id))
                    if status != 0:  # others have connected, and their end shows there
                        self._notify(b"D", slot_id, status)
                    break

    def _give_back(self, cgroup):
        if cgroup is not None:
            self.free_cgroups.append(cgroup)

    def _start(self, slot_id):
        """None, or in the new process the slot."""
        cgroup = self.free_cgroups.pop(0) if self.free_cgroups else None
        try:
            pid = self.level.fork(slot_id)
        except OSError as error:
            self._give_back(cgroup)
            self._notify(b"E", slot_id, error.errno or 0)
            return None
        if pid:
            self.pids[slot_id] = pid
            self.cgroup_of[slot_id] = cgroup
            return None
        return self._be_slot(slot_id, cgroup)

    def _be_slot(self, slot_id, number):
        """In a new process: a slot that waits for its program."""
        link = None
        try:
            signal.set_wakeup_fd(-1)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            for descriptor in (self.control, *self.wake):
                os.close(descriptor)
            cgroup = cgroups.Cgroup(number, self.cgroups)
            link = slot.connect(self.config["socket"], bytes.fromhex(self.config["token"]), slot_id)
            self.config = None
            self.level.enter()
            return slot.Slot(link, self.level, self.space, cgroup)
        except BaseException as error:
            slot.end(self.level, link, error)


def _find_packages():
    """As the interpreter does at its start, but the code that packages want to run at every start does not run: it would be in every process."""
    import site

    site.exec = lambda *_: None
    site.main()


def _high(descriptor):
    """The same file at a number that no test descriptor uses."""
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)


def main():
    zygote = Zygote()
    zygote.warm()
    zygote.greet()
    return zygote.serve()


if __name__ == "__main__":
    program.stage(main)
