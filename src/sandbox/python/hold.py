"""Holds the file system that programs see, and starts zygotes in it. One per jail, outside of every program's reach.

It runs where enter.py or bubblewrap put it, among the host's files: copies what programs may see to a tmpfs, makes that its root, lets go of
everything else, and says so on its output. Then enter.py comes once for each zygote, through the socket at descriptor DOOR, with the
descriptors that the zygote is to have; a zygote lives as long as that connection.

Argument: JSON {"namespaces": a pid and a mount namespace for each zygote?, "target": the folder of the tmpfs, "keep": {path: path in the new
root} (mounts that come along), "code": where these files are shown, "packages": do they come along?, "maxBytes": of packages,
"tools": [files and folders of other languages],
"command": [...], "environment": {...}}.
"""

import _signal
import _socket
import array
import json
import os
import select
import stat
import struct
import sys

_OWN = os.path.dirname(os.path.abspath(__file__))
_LIBRARY = [path for path in sys.path if path != _OWN and os.path.exists(path)]
sys.path.insert(0, _OWN)

import files  # noqa: E402
import cgroups  # noqa: E402
import kernel  # noqa: E402

_ALIVE, DOOR = 3, 4
_BYTES = "size=75%,mode=755"
_DEVICES = ("null", "full", "random", "urandom")
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
HEAD = struct.Struct("<I")


def _mount_ourselves(target):
    """Without bubblewrap, as root: a mount namespace, and in it the tmpfs with devices and /proc."""
    kernel.unshare(kernel.NEWNS)
    kernel.mount(None, b"/", None, kernel.MS_REC | kernel.MS_PRIVATE, None)
    kernel.mount(b"files", target.encode(), b"tmpfs", kernel.MS_NOSUID, _BYTES.encode())
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    os.mkdir(target + "/proc")
    try:
        # Others' processes are not there: only those that may be traced.
        kernel.mount(b"proc", (target + "/proc").encode(), b"proc", flags, b"subset=pid,hidepid=ptraceable")
    except OSError:  # before Linux 5.8
        kernel.mount(b"/proc", (target + "/proc").encode(), None, kernel.MS_BIND | kernel.MS_REC, None)
    os.mkdir(target + "/dev")
    for name in _DEVICES:
        open(target + "/dev/" + name, "w").close()
        _bind("/dev/" + name, target + "/dev/" + name)
    for name, leads_to in _LINKS.items():
        os.symlink(leads_to, target + "/dev/" + name)


def _bind(source, target, more=0):
    kernel.mount(source.encode(), target.encode(), None, kernel.MS_BIND | more, None)


def _move_in(config):
    target = config["target"]
    if not config["namespaces"]:
        _mount_ourselves(target)
    found = files.package_folders(_LIBRARY)
    files.fill(target, _LIBRARY, found if config["packages"] else [], sys.executable, config["code"], config["maxBytes"], config["tools"])
    for source, place in config["keep"].items():
        os.makedirs(target + place, exist_ok=True)
        _bind(source, target + place, kernel.MS_REC if config["namespaces"] else 0)
    packages = files.packages(found)
    os.mkdir(target + "/host")
    kernel.pivot_root(target.encode(), (target + "/host").encode())
    os.chdir("/")
    kernel.unmount(b"/host")
    os.rmdir("/host")
    for path in ["/", *_devices()]:  # touching a device would leave a time there, for everybody to see
        kernel.mount(None, path.encode(), None, kernel.read_only_flags(path), None)
    return packages


def _devices():
    return [path for path in ("/dev/" + name for name in os.listdir("/dev")) if stat.S_ISCHR(os.lstat(path).st_mode)]


class Zygote:
    """A connection, and the process that was started for it."""

    def __init__(self, connection):
        self.connection = connection
        self.pid = self.pidfd = None
        self.wanted = None
        self.descriptors = []

    def receive(self):
        """False when whoever asked is gone."""
        size = array.array("i").itemsize
        data, ancillary, _flags, _address = self.connection.recvmsg(HEAD.size, _socket.CMSG_LEN(256 * size), _socket.MSG_CMSG_CLOEXEC)
        for level, kind, payload in ancillary:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                held = array.array("i")
                held.frombytes(payload[: len(payload) - len(payload) % size])
                self.descriptors += held
        if len(data) < HEAD.size:
            return False
        self.wanted = HEAD.unpack(data)[0]
        return True

    def ready(self):
        return self.pid is None and self.wanted == len(self.descriptors)

    def start(self, config):
        self.pid = kernel.fork_into(kernel.NEWPID | kernel.NEWNS) if config["namespaces"] else kernel.fork()
        if self.pid == 0:
            try:
                self._become(config)
            except BaseException as error:
                os.write(2, ("%s: %s\n" % (type(error).__name__, error)).encode())
            finally:
                os._exit(1)
        self.pidfd = kernel.pidfd_open(self.pid)
        for descriptor in self.descriptors:
            os.close(descriptor)

    def _become(self, config):
        count = len(self.descriptors)
        high = cgroups.FIRST + count
        for index, descriptor in enumerate(self.descriptors):
            os.dup2(descriptor, high + index)
        for index in range(count):
            os.dup2(high + index, index if index < 4 else cgroups.FIRST + index - 4)
        kernel.close_range(4, cgroups.FIRST)
        kernel.close_from(cgroups.FIRST + max(0, count - 4))
        if config["namespaces"]:
            flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
            kernel.mount(b"proc", b"/proc", b"proc", flags)
            kernel.drop_capabilities()
        kernel.die_with_parent()
        os.setsid()
        os.execve(config["command"][0], config["command"], config["environment"])

    def kill(self):
        if self.pid is not None:
            try:
                os.kill(self.pid, _signal.SIGKILL)
            except ProcessLookupError:
                pass

    def ended(self):
        """Tells how it ended, as a shell would."""
        _pid, status = os.waitpid(self.pid, 0)
        code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        try:
            self.connection.send(HEAD.pack(code))
        except OSError:
            pass
        os.close(self.pidfd)
        self.connection.close()


def serve(config):
    door = _socket.socket(fileno=DOOR)
    poller = select.poll()
    poller.register(_ALIVE, select.POLLIN)
    poller.register(DOOR, select.POLLIN)
    by_descriptor = {}
    while True:
        for descriptor, _events in poller.poll():
            if descriptor == _ALIVE:
                if not os.read(_ALIVE, 4096):
                    os._exit(0)
            elif descriptor == DOOR:
                connection = _socket.socket(fileno=door._accept()[0])
                by_descriptor[connection.fileno()] = Zygote(connection)
                poller.register(connection.fileno(), select.POLLIN)
            elif descriptor in by_descriptor:
                _attend(by_descriptor, poller, descriptor, config)


def _attend(by_descriptor, poller, descriptor, config):
    zygote = by_descriptor[descriptor]
    if descriptor == zygote.pidfd:
        del by_descriptor[descriptor]
        poller.unregister(descriptor)
        if by_descriptor.pop(zygote.connection.fileno(), None) is not None:
            poller.unregister(zygote.connection.fileno())
        zygote.ended()
    elif not zygote.receive():
        del by_descriptor[descriptor]
        poller.unregister(descriptor)
        if zygote.pid is None:
            zygote.connection.close()
        zygote.kill()
    elif zygote.ready():
        zygote.start(config)
        by_descriptor[zygote.pidfd] = zygote
        poller.register(zygote.pidfd, select.POLLIN)


def main():
    config = json.loads(sys.argv[1])
    packages = _move_in(config)
    os.write(1, json.dumps(packages).encode() + b"\n")
    serve(config)


main()
