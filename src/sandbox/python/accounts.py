"""What the processes of a program hold and use, read from /proc. A process that ended meanwhile counts nothing."""

import os
import stat

_FIRST = b"1000"


def processes():
    """Every process of this pid namespace but its first, which is the supervisor."""
    return [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def _number(path, wanted):
    """The first number on the line of that name; 0 where there is none."""
    try:
        with open(path, "rb") as file:
            for line in file:
                name, _, value = line.partition(b":")
                if name == wanted:
                    return int(value.split()[0])
    except OSError:
        pass
    return 0


def own_bytes(pid):
    """Anonymous memory: a process's own pages, and pages that it shares with those it was forked from or forked."""
    return 1024 * _number("/proc/%s/status" % pid, b"RssAnon")


def fair_bytes(pid):
    """The same, with each shared page divided among those who share it. Walks the page tables: only asked when it matters."""
    path = "/proc/%s/smaps_rollup" % pid
    return 1024 * (_number(path, b"Pss_Anon") or _number(path, b"Pss")) or own_bytes(pid)


class OrderOfKilling:
    """Whoever is forked takes its place with it: the supervisor changes its own for the moment of the fork."""

    def __init__(self):
        self._own, self._later = -1, b"0"
        try:
            self._own = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
            self._later = os.read(self._own, 16)
        except OSError:
            pass

    def _write(self, place):
        if self._own >= 0:
            try:
                os.pwrite(self._own, place, 0)
            except OSError:
                pass

    def first(self):
        self._write(_FIRST)

    def later(self):
        self._write(self._later)


def kill_first(pid):
    """What the kernel ends first when memory runs out, before those who watch it, whatever it wrote there itself."""
    try:
        opened = os.open("/proc/%s/oom_score_adj" % pid, os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(opened, _FIRST)
    except OSError:
        pass
    finally:
        os.close(opened)


def threads(pid):
    return _number("/proc/%s/status" % pid, b"Threads")


def cpu_ms(pid):
    """Processor time of a process and of the children it has waited for."""
    try:
        with open("/proc/%s/stat" % pid, "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return sum(int(field) for field in fields[11:15]) * 1000 / _TICKS if len(fields) > 15 else 0


_TICKS = os.sysconf("SC_CLK_TCK")


def ran_and_waited_s(pid):
    """How long each thread of a process ran, and how long it was ready to run and had no processor. None: a kernel that does not count."""
    try:
        threads = os.listdir("/proc/%s/task" % pid)
    except OSError:
        return
    for thread in threads:
        try:
            with open("/proc/%s/task/%s/schedstat" % (pid, thread), "rb") as file:
                ran, waited = file.read().split()[:2]
        except (OSError, ValueError):
            continue
        yield int(ran) / 1e9, int(waited) / 1e9


def descriptors(pid):
    try:
        return len(os.listdir("/proc/%s/fd" % pid))
    except OSError:
        return 0


def hidden_files(pid, seen, device, unknown):
    """Bytes in files of a device that have no name any more, so that no folder shows them: open ones by their size, and those that are
    only mapped as `unknown` bytes each, because a mapping of one page can hold a whole file."""
    used = 0
    try:
        for name in os.listdir("/proc/%s/fd" % pid):
            try:
                status = os.stat("/proc/%s/fd/%s" % (pid, name))
            except OSError:
                continue
            # One with a name lies in the folder that was looked through, or elsewhere, where nothing can be written: Java holds its library open.
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 0 and status.st_dev == device and status.st_ino not in seen:
                seen.add(status.st_ino)
                used += status.st_blocks * 512
        own = "%02x:%02x" % (os.major(device), os.minor(device))
        with open("/proc/%s/maps" % pid) as file:
            for line in file:
                parts = line.split(None, 5)
                if len(parts) == 6 and parts[3] == own and line.endswith("(deleted)\n") and int(parts[4]) not in seen:
                    seen.add(int(parts[4]))
                    used += unknown
    except OSError:
        pass
    return used
