"""Starts the outer jail (or the bare zygote): sets what an exec inherits, gives up root, makes paths reachable, then becomes the command.

Argument: JSON {"command": [...], "environment": {...}, "user": id or null, "paths": [...], "stackBytes": n, "groups": see groups.py, or null}.
`paths` must be readable for the new user. Where a folder above one is closed to others (interpreters below /root), a private mount
namespace shows the same path through an empty, open copy of that folder; nothing outside this process sees it.
"""

import ctypes
import json
import os
import resource
import sys

_NEWNS = 0x00020000
_NOBODY = 65534
_BIND, _REC, _PRIVATE = 4096, 16384, 1 << 18


def _mount(source, target, kind, flags, data=None):
    libc = ctypes.CDLL(None, use_errno=True)
    encode = lambda text: None if text is None else text.encode()  # noqa: E731
    if libc.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data)) != 0:
        raise OSError(ctypes.get_errno(), "mount %s: %s" % (target, os.strerror(ctypes.get_errno())))


def _closed_folder(path):
    """The topmost folder above (or at) the path that others may not enter; None when the way is open."""
    current = "/"
    for part in [""] + path.strip("/").split("/"):
        current = os.path.join(current, part)
        if os.path.isdir(current) and not os.stat(current).st_mode & 0o001:
            return current.rstrip("/")
    return None


def _open_up(paths):
    closed = {}
    for path in paths:
        folder = _closed_folder(path)
        if folder is not None:
            closed.setdefault(folder, []).append(path)
    if not closed:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "%s is closed to other users, and a mount namespace is refused" % ", ".join(closed))
    _mount(None, "/", None, _REC | _PRIVATE)
    # Opened after the unshare, so that they belong to this namespace; they stay reachable when their paths are covered.
    held = [(os.open(path, os.O_PATH), path) for below in closed.values() for path in below]
    for folder in closed:
        _mount("open", folder, "tmpfs", 0, "size=64k,mode=755")
    for descriptor, path in held:
        os.makedirs(path, mode=0o755, exist_ok=True)
        _mount("/proc/self/fd/%d" % descriptor, path, None, _BIND | _REC)
        os.close(descriptor)


def _die_first():
    """Where memory runs out, all of this goes before whoever grades, and programs (accounts.py) before those who watch them. Set as root
    it cannot be taken back."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("900")
    except OSError:
        pass


def main():
    config = json.loads(sys.argv[1])
    user = config["user"]
    os.umask(0o022)
    _die_first()
    if config["groups"]:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import groups

        groups.open_all(config["groups"]["version"], config["groups"]["folders"], _NOBODY if os.geteuid() == 0 else None)
    if config["paths"]:
        _open_up(config["paths"])
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    stack = config["stackBytes"]
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    if hard != resource.RLIM_INFINITY:
        stack = min(stack, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (stack, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execve(config["command"][0], config["command"], config["environment"])


main()
