"""Starts what a jail consists of. Sets what an exec inherits, gives up root, makes paths reachable, then becomes the command: the outer jail
with the holder of files in it (hold.py), or, where no files are held, a bare zygote. Or asks a holder for a zygote, and stands for it.

Argument: JSON {"command": [...], "environment": {...}, "user": id or null, "paths": [...], "stackBytes": n, "cgroups": see cgroups.py, or null,
"door": where a holder listens, or null}, or {"knock": the same place, "cgroups": …, "user": …}.
`paths` must be readable for the new user. Where a folder above one is closed to others (interpreters below /root), a private mount
namespace shows the same path through an empty, open copy of that folder; nothing outside this process sees it.
"""

import ctypes
import json
import os
import resource
import stat
import sys

_NEWNS = 0x00020000
_NOBODY = 65534
_DOOR, _AT_ONCE = 4, 200
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
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.makedirs(path, mode=0o755, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            open(path, "w").close()
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


def _listen(path):
    """A socket at the descriptor where hold.py looks for it; only this user finds it."""
    import socket

    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    os.umask(0o177)
    door.bind(path)
    os.umask(0o022)
    door.listen(64)
    own = door.detach()
    if own != _DOOR:
        os.dup2(own, _DOOR)
        os.close(own)
    os.set_inheritable(_DOOR, True)


def _knock(path, first, count):
    """Hands descriptors 0 to 3 and those of the cgroups to the holder; ends as the zygote does, which ends with this process."""
    import array
    import socket
    import struct

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    given = [*range(4), *range(first, first + count)]
    for start in range(0, len(given), _AT_ONCE):
        piece = array.array("i", given[start : start + _AT_ONCE])
        connection.sendmsg([struct.pack("<I", len(given))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, piece)])
    own = connection.detach()
    os.dup2(own, 0)
    os.closerange(1, 4096)
    code = os.read(0, 4)
    os._exit(struct.unpack("<I", code)[0] if len(code) == 4 else 1)


def main():
    config = json.loads(sys.argv[1])
    user = config["user"]
    os.umask(0o022)
    _die_first()
    first = count = 0
    if config.get("cgroups"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import cgroups

        cgroups.open_all(config["cgroups"]["version"], config["cgroups"]["folders"], _NOBODY if os.geteuid() == 0 else None)
        first, count = cgroups.FIRST, 3 * cgroups.there(len(config["cgroups"]["folders"]))
    if config.get("knock"):
        _knock(config["knock"], first, count)
    if config.get("door"):
        _listen(config["door"])
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
