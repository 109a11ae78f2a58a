"""A slot's memory control group: the kernel ends a process of the program when all of them together hold more than the limit, whatever kind of memory.

The files are opened outside the jail, with the rights of whoever starts it (enter.py), and kept at fixed descriptors: programs see none of this.
"""

import os

import kernel

FIRST = 100  # descriptors: three per group
_SLACK = 64 * 1024 * 1024  # the supervisor, and what the kernel itself holds for an honest program
_FILES = {
    1: ("cgroup.procs", "memory.limit_in_bytes", "memory.oom_control"),
    2: ("cgroup.procs", "memory.max", "memory.events"),
}


def open_all(version, folders, user=None):
    """Opens the files of every group at their descriptors; nothing is open where the one who will use them (`user`) cannot."""
    import fcntl

    opened = []
    try:
        for folder in folders:
            for name, flags in zip(_FILES[version], (os.O_WRONLY, os.O_RDWR, os.O_RDONLY)):
                descriptor = os.open(os.path.join(folder, name), flags)
                opened.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD, FIRST + 3 * len(folders)))
                os.close(descriptor)
        _try(opened[0], user)
        for index, descriptor in enumerate(opened):
            os.dup2(descriptor, FIRST + index)
    except OSError:
        pass
    for descriptor in opened:
        os.close(descriptor)


def _try(descriptor, user):
    """A process can move itself there. Before Linux 5.16 it is not enough that somebody could who opened the file."""
    child = os.fork()
    if child == 0:
        try:
            if user is not None:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            os.write(descriptor, b"0")
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        raise OSError("refused")


def there(count):
    """How many cgroups came along."""
    try:
        os.fstat(FIRST + 3 * count - 1)
        return count
    except OSError:
        return 0


class Cgroup:
    """The group of one slot; without a number, none: everything is allowed and nothing is known."""

    def __init__(self, number, count):
        self.limit = self.events = None
        self._killed = 0
        end = FIRST + 3 * count
        if number is None:
            kernel.close_range(FIRST, end)
            return
        first = FIRST + 3 * number
        try:
            os.write(first, b"0")
        except OSError:  # an old kernel, from inside namespaces
            kernel.close_range(FIRST, end)
            return
        kernel.close_range(FIRST, first + 1)
        kernel.close_range(first + 3, end)
        self.limit, self.events = first + 1, first + 2

    def bound(self, limits):
        if self.limit is None:
            return
        size = limits["treeBytes"] + limits["scratchBytes"] + _SLACK
        try:
            os.pwrite(self.limit, b"%d" % size, 0)
        except OSError:
            pass  # busy with what an earlier slot left; what programs hold is counted all the same
        self._killed = self._kills()

    def _kills(self):
        for line in os.pread(self.events, 4096, 0).splitlines():
            name, _, value = line.partition(b" ")
            if name == b"oom_kill":
                return int(value)
        return 0

    def exceeded(self):
        """The kernel ended one of the program's processes since the last look."""
        if self.events is None:
            return False
        before, self._killed = self._killed, self._kills()
        return self._killed > before
