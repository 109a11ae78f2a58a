"""The two ways a slot keeps a program in. Both give a scratch folder per test, lock the test's process in, and leave no process behind.

Jail: namespaces of its own (user, pid, mount, ipc, uts, cgroup; no network comes from the outer jail), a sized tmpfs per test, seccomp.
Confined (the "landlock" level): no namespaces. Landlock guards files, seccomp refuses sockets, new processes and signals to others.
"""

import os
import signal
import stat

import accounts
import kernel
import seccomp
import waits

_INODES = 4096
_DESCRIPTORS = 4  # times the limit of one process, for all processes together
_DEPTH = 64  # of folders in the scratch folder of the second level
_INNER_ID = 1000
_LOWEST_PID, _ROOM_OF_PIDS = 300, 2000
_PAGE = 4096
_WALL = 0x40000000  # waiting for children of every kind
_MUCH = 128 * 1024 * 1024
RULES = 4  # the descriptor of what a test's process is held by


class Jail:
    scratch = "/tmp"
    counts_processes = True
    namespaces = kernel.NEWUSER | kernel.NEWPID | kernel.NEWNS | kernel.NEWIPC | kernel.NEWUTS

    def __init__(self, config):
        self.filter = kernel.Filter(*seccomp.guards(processes=True))
        self.answered = kernel.Filter(*seccomp.guards(processes=True, asks=True))
        self.user, self.group = os.geteuid(), os.getegid()
        self.mounted = False
        self.base_bytes = 0
        self._open_pid_counter()
        try:
            self.apart = kernel.Apart("/proc", self.scratch)
        except OSError:  # before Linux 5.19
            self.apart = None

    def fork(self, _slot_id):
        return kernel.fork_into(self.namespaces)

    def enter(self):
        """Runs as process 1 of the new namespaces, after the socket to Node is open."""
        os.setsid()
        kernel.unshare(kernel.NEWCGROUP)  # from here: the group that the slot is in by now is its root
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", "%d %d 1" % (_INNER_ID, self.user))
        _write("/proc/self/gid_map", "%d %d 1" % (_INNER_ID, self.group))
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        try:
            # Programs see their own processes, not this one: its counters would tell one test of another.
            kernel.mount(b"proc", b"/proc", b"proc", flags, b"subset=pid,hidepid=2")
        except OSError:  # before Linux 5.8
            kernel.mount(b"proc", b"/proc", b"proc", flags, b"hidepid=2")
        self.order = accounts.OrderOfKilling()
        kernel.hide_memory()

    def _open_pid_counter(self):
        """The last process id of the namespace of whoever writes to it, to be set before every test; None where the kernel has no such file."""
        self.last_pid = None
        try:
            opened = os.open("/proc/sys/kernel/pid_max", os.O_RDONLY)
            self.pids = int(os.read(opened, 64)) - _LOWEST_PID - _ROOM_OF_PIDS
            os.close(opened)
            self.last_pid = os.open("/proc/sys/kernel/ns_last_pid", os.O_WRONLY | os.O_CLOEXEC)
        except (OSError, ValueError):
            pass

    def shuffle_pids(self):
        """Process ids start anywhere: they tell neither the number of a test nor how many processes an earlier one started."""
        if self.last_pid is not None:
            start = _LOWEST_PID + int.from_bytes(os.urandom(4), "little") % self.pids
            os.pwrite(self.last_pid, b"%d" % start, 0)

    def fresh_scratch(self, job, input_bytes):
        """Also covers the socket to Node, which lies under the scratch folder. The test's input gets room of its own."""
        if self.mounted:
            kernel.unmount(b"/tmp")
        size = job["limits"]["scratchBytes"] + -(-input_bytes // _PAGE) * _PAGE
        kernel.mount(b"scratch", b"/tmp", b"tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, b"size=%d,nr_inodes=%d,mode=700" % (size, _INODES))
        os.chdir(self.scratch)
        self.mounted = True
        if self.apart is not None:
            self.apart.prepare(self.scratch, RULES)

    def remove_scratch(self):
        """It goes with the namespaces."""

    def input_file(self):
        """A file without a name on the test's own file system: its number and times tell nothing."""
        path = self.scratch + "/stdin"
        writing = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
        reading = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        os.unlink(path)
        return writing, reading

    def seal_input(self, writing, reading):
        os.close(writing)
        return reading

    def lock_in(self, door):
        """`door`: where the supervisor takes what it is asked (waits.py), or -1."""
        kernel.drop_capabilities()
        kernel.show_memory()  # to the supervisor, which counts it
        if self.apart is not None:
            # Much in /proc tells of others: sockets, mounts, how many processes share a page.
            self.apart.restrict()
        else:
            os.close(RULES)
        (self.answered if waits.handed_over(door) else self.filter).install()

    def kill_all(self, _child):
        """Everything in the namespace but this process."""
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def reap_all(self):
        try:
            while True:
                # With nobody to wait for there is nobody left; a signal to everybody walks all processes of the machine.
                if os.waitpid(-1, os.WNOHANG | _WALL)[0] == 0:
                    self.kill_all(None)
                    os.waitpid(-1, _WALL)
        except ChildProcessError:
            pass

    def look_at(self, watch):
        """All processes of the program together; rlimits bound each of them alone.

        Descriptors count because pipes and sockets hold kernel memory that belongs to no process.
        """
        total = descriptors = 0
        pids = accounts.processes()
        for pid in pids:
            held = max(0, accounts.own_bytes(pid) - self.base_bytes)
            if held > _MUCH or pid not in watch.marked:
                accounts.kill_first(pid)
                watch.marked.add(pid)
            total += held
            descriptors += accounts.descriptors(pid)
        if total > watch.limits["treeBytes"] and len(pids) > 1:
            # Pages that forked processes share were counted once for each of them.
            total = sum(accounts.fair_bytes(pid) for pid in pids)
        watch.peak_bytes = max(watch.peak_bytes, total)
        watch.tree_cpu_ms = max(watch.tree_cpu_ms, self.used_ms(watch))
        if total > watch.limits["treeBytes"] or descriptors > _DESCRIPTORS * watch.limits["openFiles"]:
            watch.reason = "memory-limit"
        elif watch.tree_cpu_ms > watch.limits["cpuMs"]:
            watch.reason = "time-limit"

    def used_ms(self, watch):
        """Processor time of all processes of the program. None can vanish with its time: SIGCHLD cannot be ignored (seccomp.py), so one that has
        ended is there until its parent waits for it, which then has its time, or until it comes to this process."""
        try:
            while True:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _WALL)
                if ended is None or ended.si_pid == watch.child:
                    break
                usage = os.wait4(ended.si_pid, _WALL)[2]
                watch.orphans_ms += (usage.ru_utime + usage.ru_stime) * 1000
        except ChildProcessError:
            pass
        return watch.orphans_ms + sum(accounts.cpu_ms(pid) for pid in accounts.processes())


class _Anybody:
    child = "self"
    limits = {"scratchBytes": 1 << 30, "fileBytes": 0}


class Confined:
    def __init__(self, config):
        self.tools = config["tools"]
        self.executes = config["executes"]
        self.own = ()
        self.filter = kernel.Filter(*seccomp.guards(processes=False, executes=self.executes))
        self.answered = kernel.Filter(*seccomp.guards(processes=False, executes=self.executes, asks=True))
        self.readable = config["readable"]
        self.folder = config["scratch"]
        self.first_user, self.users = config["firstUser"], config["users"]
        self.counts_processes = self.first_user is not None
        self.scratch = None
        self.base_bytes = 0
        self._rehearse()

    def _rehearse(self):
        """What Python keeps of a call that it makes for the first time is made before any test: it would tell later ones that an earlier one took
        long, or made folders."""
        self.fresh_scratch(None, 0)
        os.mkdir("folder")
        self._over_scratch(_Anybody)
        os.chdir("/")
        self.remove_scratch()

    def fork(self, slot_id):
        pid = kernel.fork()
        if pid == 0:
            self.user = None if self.first_user is None else self.first_user + slot_id % self.users
        return pid

    def enter(self):
        kernel.die_with_parent()
        os.setsid()
        if self.user is not None:
            os.setgroups([])
            os.setresgid(self.user, self.user, self.user)
            os.setresuid(self.user, self.user, self.user)
            kernel.die_with_parent()  # a change of user clears it
            kernel.show_memory()  # and closes one's own folder in /proc
        self.order = accounts.OrderOfKilling()
        kernel.hide_memory()

    def shuffle_pids(self):
        """Process ids are the host's here."""

    def fresh_scratch(self, job, _input_bytes):
        self.supervisor = os.getpid()
        self.remove_scratch()
        scratch = os.path.join(self.folder, "slot-" + os.urandom(8).hex())
        os.mkdir(scratch, 0o700)
        self.scratch = scratch
        self.device = os.stat(self.scratch).st_dev
        # A compiled program is executed itself, and nothing that it writes: what its user may not read, its supervisor could not look at.
        self.own = (os.path.join(scratch, job["name"]),) if self.executes and job is not None else ()
        os.chdir(self.scratch)

    def input_file(self):
        writing = kernel.memory_file(b"stdin")
        return writing, writing

    def seal_input(self, writing, _reading):
        kernel.seal(writing)
        os.lseek(writing, 0, os.SEEK_SET)
        return writing

    def remove_scratch(self):
        if self.scratch is not None:
            try:
                _remove_tree(self.scratch)
            except OSError:
                pass  # the next test has a folder of its own; what is left goes when the jail closes
            self.scratch = None

    def lock_in(self, door):
        kernel.die_with_parent()
        if os.getppid() != self.supervisor:
            os._exit(1)  # it died before that call
        os.environ["HOME"] = os.environ["TMPDIR"] = self.scratch
        rules = kernel.Landlock(self.readable, self.scratch, self.tools or self.own)
        kernel.drop_capabilities()
        kernel.show_memory()
        rules.restrict()
        os.close(rules.descriptor)
        os.close(RULES)
        (self.answered if waits.handed_over(door) else self.filter).install()

    def kill_all(self, child):
        """The program could not start another process."""
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def reap_all(self):
        pass

    def look_at(self, watch):
        total = max(0, accounts.own_bytes(watch.child) - self.base_bytes)
        watch.peak_bytes = max(watch.peak_bytes, total)
        if total > _MUCH or not watch.marked:
            accounts.kill_first(watch.child)
            watch.marked.add(watch.child)
        if total > watch.limits["treeBytes"]:
            watch.reason = "memory-limit"
        elif self._over_scratch(watch):
            watch.reason = "output-limit"
        elif not self.counts_processes and accounts.threads(watch.child) > watch.limits["processes"]:
            watch.reason = "runtime-error"
            watch.note = b"ended: more than %d threads" % watch.limits["processes"]

    def used_ms(self, watch):
        return accounts.cpu_ms(watch.child)

    def _over_scratch(self, watch):
        """No file system of a fixed size without mounts: what lies in the folder is counted instead, and what was removed from it but is
        still held. The second filter keeps every folder readable."""
        limits = watch.limits
        used = entries = 0
        seen = set()
        folders = [(self.scratch, 0)]
        while folders:
            folder, depth = folders.pop()
            if depth > _DEPTH:
                return True
            try:
                with os.scandir(folder) as listing:
                    for entry in listing:
                        entries += 1
                        status = entry.stat(follow_symlinks=False)
                        used += status.st_blocks * 512
                        seen.add(status.st_ino)
                        if entry.is_dir(follow_symlinks=False):
                            folders.append((entry.path, depth + 1))
                        if entries > _INODES or used > limits["scratchBytes"]:
                            return True
            except OSError:
                continue  # gone meanwhile
        used += accounts.hidden_files(watch.child, seen, self.device, limits["fileBytes"])
        return used > limits["scratchBytes"]


def _remove_tree(root):
    """Deletes a folder of any depth: every folder below is first moved up into the root, so no path gets long."""
    prefix, moved = os.urandom(8).hex(), 0
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        waiting = [None]
        while waiting:
            name = waiting.pop()
            folder = top if name is None else os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
            for entry in os.listdir(folder):
                if not stat.S_ISDIR(os.lstat(entry, dir_fd=folder).st_mode):
                    os.unlink(entry, dir_fd=folder)
                    continue
                moved += 1
                below = "%s-%d" % (prefix, moved)
                os.chmod(entry, 0o700, dir_fd=folder)
                os.rename(entry, below, src_dir_fd=folder, dst_dir_fd=top)
                waiting.append(below)
            if name is not None:
                os.close(folder)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(root)


def _write(path, text):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)

