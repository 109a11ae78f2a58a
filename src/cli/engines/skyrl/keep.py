"""Runs a Python module as a server that ends with whoever started it.

    python keep.py run -m MODULE ARGUMENT...             ends the module, and all that it started, once standard input closes
    python keep.py uv FILE run ... -m MODULE ARGUMENT... the file, in the module's place and in that of this process

SkyRL's API starts its engine through `uv run` and reads its parent's command line for the flags between `run` and `-m`: the first form is
such a parent, the second stands in for uv. On Linux every process here dies with the one that started it, whatever ended that one.
"""

import ctypes
import os
import signal
import sys
import threading
import time

GRACE_SECONDS = float(os.environ.get("WHET_ENGINE_GRACE_S", "15"))
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def tell_kernel(option, value):
    try:
        ctypes.CDLL(None).prctl(option, value)
    except (OSError, AttributeError):
        pass  # elsewhere the closing of standard input has to do


def become(words):
    """What Python is to run, in this process."""
    tell_kernel(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execv(sys.executable, [sys.executable, *words])


def state_of(pid):
    """Whether a process runs, and its parent; None where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return fields[0] not in (b"Z", b"X"), int(fields[1])
    except (OSError, ValueError, IndexError):
        return None


def descendants():
    """The processes below this one; none where there is no /proc."""
    children = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        state = state_of(name) if name.isdigit() else None
        if state and state[0]:
            children.setdefault(state[1], []).append(int(name))
    found, waiting = [], [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def end(child):
    """Asks the server to stop, and ends whatever is left of it after a while."""
    send(child, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline and descendants():
        time.sleep(0.1)
    for pid in descendants():
        send(pid, signal.SIGKILL)


def keep(words):
    # What the server leaves behind becomes a child of this process, so that it is found.
    tell_kernel(PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        become(words[words.index("-m") :])

    def watch():
        while os.read(0, 4096):
            pass
        end(child)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    # Ctrl-C reaches every process of a terminal; the parent still needs this server while it saves.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pid, status = os.wait()
        if pid == child:
            end(child)
            code = os.waitstatus_to_exitcode(status)
            os._exit(128 - code if code < 0 else code)


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    if kind == "uv":
        become([words[0], *words[words.index("-m") + 2 :]])
    keep(words)
