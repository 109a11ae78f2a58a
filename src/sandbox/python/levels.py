"""The two ways a slot keeps a program in. Both give a scratch folder per test, lock the test's process in, and leave no process behind.

Jail: namespaces of its own (user, pid, mount, ipc, uts, cgroup; no network comes from the outer jail), a sized tmpfs per test, seccomp.
Confined (the "landlock" level): no namespaces. Landlock guards files, seccomp refuses sockets, new processes and signals to others.
"""

import os
import signal
import stat
import tempfile

import kernel
import seccomp

_INODES = 4096
_DESCRIPTORS = 4  # times the limit of one process, for all processes together
_DEPTH = 64  # of folders in the scratch folder of the second level
_INNER_ID = 1000


class Jail:
    scratch = "/tmp"
    counts_processes = True
    namespaces = kernel.NEWUSER | kernel.NEWPID | kernel.NEWNS | kernel.NEWIPC | kernel.NEWUTS | kernel.NEWCGROUP

    def __init__(self, config):
        self.filter = kernel.Filter(*seccomp.guards(processes=True))
        self.user, self.group = os.geteuid(), os.getegid()
        self.mounted = False
        self.base_bytes = 0

    def fork(self, _slot_id):
        return kernel.fork_into(self.namespaces)

    def enter(self):
        """Runs as process 1 of the new namespaces, after the socket to Node is open."""
        os.setsid()
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", "%d %d 1" % (_INNER_ID, self.user))
        _write("/proc/self/gid_map", "%d %d 1" % (_INNER_ID, self.group))
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        try:
            kernel.mount(b"proc", b"/proc", b"proc", flags, b"subset=pid")
        except OSError:  # before Linux 5.8
            kernel.mount(b"proc", b"/proc", b"proc", flags)
        kernel.hide_memory()
        self.base_bytes = _own_bytes("self")

    def fresh_scratch(self, job):
        """Also covers the socket to Node, which lies under the scratch folder."""
        if self.mounted:
            kernel.unmount(b"/tmp")
        size = job["limits"]["scratchBytes"]
        kernel.mount(b"scratch", b"/tmp", b"tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, b"size=%d,nr_inodes=%d,mode=700" % (size, _INODES))
        self.mounted = True

    def lock_in(self):
        kernel.drop_capabilities()
        self.filter.install()

    def kill_all(self, _child):
        """Everything in the namespace but this process."""
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def reap_all(self):
        while True:
            try:
                os.kill(-1, signal.SIGKILL)
                os.waitpid(-1, 0)
            except (ProcessLookupError, ChildProcessError):
                return

    def over_memory(self, watch):
        """All processes of the program together; RLIMIT_AS and RLIMIT_NOFILE bound each of them alone.

        Descriptors count because pipes and sockets hold kernel memory that belongs to no process.
        """
        total = descriptors = 0
        for name in os.listdir("/proc"):
            if name.isdigit() and name != "1":
                total += max(0, _own_bytes(name) - self.base_bytes)
                descriptors += _descriptors(name)
        watch.peak_bytes = max(watch.peak_bytes, total)
        return total > watch.limits["treeBytes"] or descriptors > _DESCRIPTORS * watch.limits["openFiles"]

    def over_scratch(self, _job):
        return False


class Confined:
    def __init__(self, config):
        self.filter = kernel.Filter(*seccomp.guards(processes=False))
        self.readable = config["readable"]
        self.folder = config["scratch"]
        self.first_user, self.users = config["firstUser"], config["users"]
        self.counts_processes = self.first_user is not None
        self.scratch = None
        self.base_bytes = 0

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
        kernel.hide_memory()
        self.base_bytes = _own_bytes("self")

    def fresh_scratch(self, _job):
        self.supervisor = os.getpid()
        self.remove_scratch()
        self.scratch = tempfile.mkdtemp(prefix="slot-", dir=self.folder)

    def remove_scratch(self):
        if self.scratch is not None:
            try:
                _remove_tree(self.scratch)
            except OSError:
                pass  # the next test has a folder of its own; what is left goes when the jail closes
            self.scratch = None

    def lock_in(self):
        kernel.die_with_parent()
        if os.getppid() != self.supervisor:
            os._exit(1)  # it died before that call
        os.environ["HOME"] = os.environ["TMPDIR"] = self.scratch
        tempfile.tempdir = None
        rules = kernel.Landlock(self.readable, self.scratch)
        kernel.drop_capabilities()
        rules.restrict()
        os.close(rules.descriptor)
        self.filter.install()

    def kill_all(self, child):
        """The program could not start another process."""
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def reap_all(self):
        pass

    def over_memory(self, watch):
        total = max(0, _own_bytes(watch.child) - self.base_bytes)
        watch.peak_bytes = max(watch.peak_bytes, total)
        return total > watch.limits["treeBytes"]

    def over_scratch(self, job):
        """No file system of a fixed size without mounts: what lies in the folder is counted instead."""
        used = entries = 0
        folders = [(self.scratch, 0)]
        while folders:
            folder, depth = folders.pop()
            if depth > _DEPTH:
                return True
            try:
                with os.scandir(folder) as listing:
                    for entry in listing:
                        entries += 1
                        used += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            folders.append((entry.path, depth + 1))
                        if entries > _INODES or used > job["limits"]["scratchBytes"]:
                            return True
            except OSError:
                continue  # gone meanwhile
        return False


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


def _own_bytes(pid):
    """Memory that a process holds beyond mapped files: its own pages and shared ones that no file backs."""
    total = 0
    try:
        with open("/proc/%s/status" % pid, "rb") as file:
            for line in file:
                if line.startswith((b"RssAnon:", b"RssShmem:")):
                    total += int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass  # ended meanwhile
    return total


def _descriptors(pid):
    try:
        return len(os.listdir("/proc/%s/fd" % pid))
    except OSError:
        return 0
