"""System calls that Python has no wrapper for: namespaces, mounts, capabilities, seccomp, Landlock. All raise OSError."""

import ctypes
import fcntl
import gc
import os
import struct
import types

_long = ctypes.c_long
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = _long
_with_lock = ctypes.PyDLL(None, use_errno=True)  # keeps Python's lock during the call, as a fork must
_with_lock.syscall.restype = _long

SIGCHLD, SIGKILL = 17, 9
NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEWUSER, NEWPID = 0x10000000, 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_CLONE = {"x86_64": 56, "aarch64": 220}
_MEMFD_CREATE = {"x86_64": 319, "aarch64": 279}
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_PIDFD_OPEN, _CLOSE_RANGE = 434, 436
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446


def _check(result):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def _syscall(number, *arguments):
    return _check(_libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]))


# Forks skip Python's own hooks: with one thread they change nothing but the state of `random`, and they touch many pages.


def fork():
    """fork() of a single-threaded process."""
    return _check(_with_lock.fork())


def fork_into(flags):
    """fork() into new namespaces; the child is process 1 of a new pid namespace."""
    return _check(_with_lock.syscall(_long(_CLONE[os.uname().machine]), _long(flags | SIGCHLD), _long(0), _long(0), _long(0), _long(0)))


def unshare(flags):
    _check(_libc.unshare(ctypes.c_int(flags)))


def mount(source, target, kind, flags, data=b""):
    _check(_libc.mount(source, target, kind, ctypes.c_ulong(flags), data))


_REMOUNT = 32
_KEPT = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}  # of a mount: as statvfs and as mount() name it


def read_only_flags(target):
    """What mount() needs to make a mounted device read-only: it can still be written to, but its times stay as they are."""
    flags = os.statvfs(target).f_flag
    return _REMOUNT | MS_BIND | MS_RDONLY | sum(to for asked, to in _KEPT.items() if flags & asked)


def pivot_root(new, old):
    """`new` becomes the root, and what was it lies at `old`, a folder below."""
    _syscall(_PIVOT_ROOT[os.uname().machine], new, old)


def unmount(target):
    _check(_libc.umount2(target, MNT_DETACH))


def _pidfd_open(pid):
    return _syscall(_PIDFD_OPEN, pid, 0)


pidfd_open = getattr(os, "pidfd_open", _pidfd_open)  # from Python 3.9 on


def close_range(first, end):
    """Closes every descriptor from `first` to before `end`."""
    if first < end and _libc.syscall(_long(_CLOSE_RANGE), _long(first), _long(end - 1), _long(0)) < 0:
        os.closerange(first, min(end, 4096))  # before Linux 5.9


# Once per test, in its process: each object that such a call makes or looks up is a page copied there. So functions and pointers are ready,
# and small numbers go as they are.
_prctl, _capset, _syscall_at_once = _libc.prctl, _libc.capset, _libc.syscall


def close_from(first):
    if _syscall_at_once(_CLOSE_RANGE, first, 0x7FFFFFFF, 0) < 0:
        os.closerange(first, 4096)  # before Linux 5.9


def die_with_parent():
    _check(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(SIGKILL), 0, 0, 0))


def hide_memory():
    """No ptrace, no /proc/<pid>/mem, no core dump of this process."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, ctypes.c_ulong(0), 0, 0, 0))


def show_memory():
    """The reverse, for a test's process: its supervisor reads what it holds from /proc."""
    _check(_prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0))


def memory_file(name):
    """An empty file without a place in any folder; see seal()."""
    return _check(_libc.syscall(_long(_MEMFD_CREATE[os.uname().machine]), name, _long(3)))


def seal(descriptor):
    """The file stays as it is from here on."""
    fcntl.fcntl(descriptor, 1033, 0xF)


_no_capabilities = tuple(ctypes.byref(ctypes.create_string_buffer(data, len(data))) for data in (struct.pack("<Ii", 0x20080522, 0), bytes(24)))


def drop_capabilities():
    """All capability sets empty."""
    _check(_capset(*_no_capabilities))


def no_new_privileges():
    """No set-user-id program, no file capability, from here on. A seccomp filter needs it."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)))


class Filter:
    """A seccomp filter ready to be installed; see seccomp.assemble."""

    def __init__(self, code, pid_offsets):
        self._code = ctypes.create_string_buffer(code, len(code))
        self._pid_offsets = pid_offsets
        address = ctypes.addressof(self._code)
        self._head = ctypes.byref(ctypes.create_string_buffer(struct.pack("@HxxxxxxQ", len(code) // 8, address)))

    def install(self):
        """For good, for this process and those it starts."""
        if self._pid_offsets:
            pid = os.getpid()
            for offset in self._pid_offsets:
                struct.pack_into("<I", self._code, offset, pid)
        _check(_prctl(_PR_SET_SECCOMP, 2, self._head, 0, 0))

    def listen(self):
        """The same, and a descriptor for whoever answers what it asks. Refused where somebody else listens already."""
        return _check(_libc.syscall(_long(_SECCOMP[os.uname().machine]), _long(1), _long(8), self._head))


def landlock_version():
    """0 when the kernel has none, or it is switched off."""
    try:
        return _syscall(_LANDLOCK_CREATE, 0, 0, 1)
    except OSError:
        return 0


_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1")
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REFER = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 13
_FILE_ONLY = _EXECUTE | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)


class _Rules:
    """A Landlock rule set: what is handled is allowed below some paths and nowhere else."""

    def __init__(self, fields):
        attributes = ctypes.create_string_buffer(struct.pack("<%dQ" % len(fields), *fields))
        self.descriptor = _syscall(_LANDLOCK_CREATE, attributes, len(fields) * 8, 0)

    def allow(self, path, access):
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return  # what is not there needs no rule
        try:
            if not os.path.isdir(path):
                access &= _FILE_ONLY
            rule = ctypes.create_string_buffer(struct.pack("<Qi", access, opened))
            _syscall(_LANDLOCK_ADD, self.descriptor, 1, rule, 0)
        finally:
            os.close(opened)

    def restrict(self):
        """For good, for this process and its children."""
        _syscall(_LANDLOCK_RESTRICT, self.descriptor, 0)


class Apart:
    """Files can be opened below every folder of the root but `hidden`, which can only be passed through: descriptors in /proc still lead to
    what they are. Every test has a rule set of its own, because its scratch folder is a file system of its own; it costs little."""

    def __init__(self, hidden, scratch):
        if landlock_version() < 2:
            raise OSError(38, "Landlock does not allow renames across folders")  # which programs do
        access = _READ_FILE | _READ_DIR | _WRITE_FILE
        self._handled = ctypes.create_string_buffer(struct.pack("<Q", access | _REFER))
        self._scratch = ctypes.create_string_buffer(struct.pack("<Qi", access | _REFER, -1))
        self._rules = [self._scratch]
        for path in ("/" + name for name in os.listdir("/")):
            if path not in (hidden, scratch) and os.path.isdir(path) and not os.path.islink(path):
                self._rules.append(ctypes.create_string_buffer(struct.pack("<Qi", access, os.open(path, os.O_PATH | os.O_CLOEXEC))))

    def prepare(self, scratch, descriptor):
        """`descriptor` is where the rules lie from here on: the lowest that is free once it is closed."""
        os.close(descriptor)
        self.descriptor = _check(_libc.syscall(_long(_LANDLOCK_CREATE), self._handled, _long(8), _long(0)))
        folder = os.open(scratch, os.O_PATH | os.O_CLOEXEC)
        struct.pack_into("<i", self._scratch, 8, folder)
        for rule in self._rules:
            _check(_libc.syscall(_long(_LANDLOCK_ADD), _long(self.descriptor), _long(1), rule, _long(0)))
        os.close(folder)

    def restrict(self):
        """For good, for this process and its children."""
        _check(_syscall_at_once(_LANDLOCK_RESTRICT, self.descriptor, 0))
        os.close(self.descriptor)


class Landlock(_Rules):
    """Read access below some paths, everything below one scratch folder, nothing elsewhere, no TCP. `tools` can be executed."""

    def __init__(self, readable, writable, tools=()):
        version = landlock_version()
        if version < 1:
            raise OSError(38, "Landlock is not available")
        files = (1 << 13) - 1
        if version >= 2:
            files |= 1 << 13  # rename and link across folders
        if version >= 3:
            files |= 1 << 14  # truncate
        if version >= 5:
            files |= 1 << 15  # device ioctl
        fields = [files]
        if version >= 4:
            fields.append(3)  # TCP bind and connect
        if version >= 6:
            fields.append(3)  # abstract sockets and signals
        super().__init__(fields)
        for path in readable:
            self.allow(path, _READ_FILE | _READ_DIR | (_WRITE_FILE if path == os.devnull else 0))
        for path in (*tools, *(_LOADERS if tools else ())):
            self.allow(path, _EXECUTE | _READ_FILE | _READ_DIR)
        everything = files & ~(1 << 0) & ~(1 << 6) & ~(1 << 11)  # no exec, no device nodes
        self.allow(writable, everything)


_EVERYBODYS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


def keep(value, *shown):
    """What the object leads to is never freed, nor shown by the garbage collector: a test's process leaves it behind without touching it. Types,
    modules and functions are everybody's; what is `shown` is the program's."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if gc.is_tracked(value) and not isinstance(value, _EVERYBODYS + shown):
            ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(value))
            waiting += gc.get_referents(value)


def set_thread_stack(size):
    """Stack of new threads; without it they would take the main thread's very large one."""
    attributes = ctypes.create_string_buffer(64)
    _check(-_libc.pthread_attr_init(attributes))
    _libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(size))
    setter = getattr(_libc, "pthread_setattr_default_np", None)
    if setter is not None:
        setter(attributes)
