"""The system calls a program may make, as seccomp filters assembled by hand (no libseccomp), for x86-64 and arm64.

Two filters, both in force for a program. The zygote installs the first once, and every process below it inherits it: an allow-list of
what programs and supervisors need, which looks at arguments where both can live with the same rule. Each test process adds the second, which
is short because it costs time per test: it takes back what only supervisors need. With processes=False it also refuses new processes and
signals to others.
Refused calls fail with EPERM; numbers newer than the list fail with ENOSYS, so that libc falls back to older calls. A call through
a foreign ABI kills the process.

Programs of several samples must not be able to talk to each other through the kernel. What could carry a message between processes that
share read-only files (locks, advice about the page cache and questions about it, hints kept with a file, clocks of other processes)
is refused, or "succeeds" without being done where honest programs use it for themselves: locks, advice, sessions of their own. So is what waits for
all processors (membarrier), and what says how many share one (sched_rr_get_interval, before Linux 6.6).
Nor may processor time vanish: what a process does on SIGCHLD stays as it is.
"""

import os
import struct

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_EPERM, _EAGAIN, _EINVAL, _ENOTTY, _ENOLCK, _ENOSYS, _ENOPROTOOPT, _EOPNOTSUPP, _EAFNOSUPPORT = 1, 11, 22, 25, 37, 38, 92, 95, 97
_DONE = 0x00050000  # the call is not made and reports success
_ASK = 0x7FC00000  # whoever listens says what comes back
_NEWEST = 462
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}
_X32_BIT = 0x40000000

# name, number on x86-64, number on arm64 (-1: not there)
_PLAIN = """
read 0 63 write 1 64 readv 19 65 writev 20 66 pread64 17 67 pwrite64 18 68 preadv 295 69 pwritev 296 70 creat 85 -1 close 3 57
close_range 436 436 lseek 8 62 stat 4 -1 fstat 5 80 lstat 6 -1 newfstatat 262 79 access 21 -1 faccessat 269 48
faccessat2 439 439 readlink 89 -1 readlinkat 267 78 getdents 78 -1 getdents64 217 61 getcwd 79 17 chdir 80 49 fchdir 81 50
rmdir 84 -1 unlink 87 -1 unlinkat 263 35 rename 82 -1 renameat 264 38 renameat2 316 276 link 86 -1 linkat 265 37 symlink 88 -1
symlinkat 266 36 mknod 133 -1 mknodat 259 33 ftruncate 77 46 fallocate 285 47 fsync 74 82 fdatasync 75 83
copy_file_range 326 285 sendfile 40 71 dup 32 23 dup2 33 -1 dup3 292 24 pipe 22 -1 pipe2 293 59 poll 7 -1 ppoll 271 73
select 23 -1 pselect6 270 72 epoll_create 213 -1 epoll_create1 291 20 epoll_ctl 233 21 epoll_wait 232 -1 epoll_pwait 281 22
epoll_pwait2 441 441 eventfd 284 -1 eventfd2 290 19 timerfd_create 283 85 timerfd_settime 286 86 timerfd_gettime 287 87
signalfd 282 -1 signalfd4 289 74 munmap 11 215 mremap 25 216 mprotect 10 226 msync 26 227 brk 12 214
pkey_alloc 330 289 pkey_free 331 290 pkey_mprotect 329 288 get_mempolicy 239 236 rt_sigprocmask 14 135
rt_sigreturn 15 139 rt_sigpending 127 136 rt_sigsuspend 130 133 rt_sigtimedwait 128 137 sigaltstack 131 132 pause 34 -1
restart_syscall 219 128 alarm 37 -1 setitimer 38 103 getitimer 36 102 timer_settime 223 110 timer_gettime 224 108
timer_getoverrun 225 109 timer_delete 226 111 nanosleep 35 101 time 201 -1 gettimeofday 96 169 times 100 153 getrusage 98 165
uname 63 160 getcpu 309 168 getrandom 318 278 getpid 39 172 getppid 110 173 gettid 186 178 getpgrp 111 -1 setpgid 109 154
getuid 102 174 geteuid 107 175 getgid 104 176 getegid 108 177 getresuid 118 148 getresgid 120 150 getgroups 115 158
capget 125 90 getrlimit 97 163 setrlimit 160 164 sched_yield 24 124 sched_get_priority_max 146 125
sched_get_priority_min 147 126
set_robust_list 273 99 set_tid_address 218 96 rseq 334 293 arch_prctl 158 -1 exit 60 93 exit_group 231 94 wait4 61 260
waitid 247 95 sendto 44 206 recvfrom 45 207 recvmsg 47 212 recvmmsg 299 243 shutdown 48 210
getsockname 51 204 getpeername 52 205
"""

# Fine in namespaces of one's own; without them they would reach other processes, or files that Landlock does not guard.
_NAMESPACED = """
fork 57 -1 vfork 58 -1 execve 59 221 execveat 322 281 kill 62 129 tkill 200 130 tgkill 234 131 rt_sigqueueinfo 129 138
rt_tgsigqueueinfo 297 240 pidfd_send_signal 424 424 truncate 76 45
"""

# Of these, which argument is the signal. None may stop a process: over HTTP what enforces a program's time runs beside it, as the same user.
_SIGNAL_AT = {"kill": 1, "tkill": 1, "tgkill": 2, "rt_sigqueueinfo": 1, "rt_tgsigqueueinfo": 2, "pidfd_send_signal": 1}
_STOPS = (19, 20, 21, 22)

# The same, and honest programs set them on copies of their own files: without namespaces they report success and do nothing.
_ATTRIBUTES = """
chmod 90 -1 fchmod 91 52 fchmodat 268 53 fchmodat2 452 452 chown 92 -1 fchown 93 55 lchown 94 -1 fchownat 260 54 utime 132 -1
utimes 235 -1 futimesat 261 -1 utimensat 280 88
"""

# Looked at with their arguments by the first filter, the frequent ones first.
_GUARDED_FOR_ALL = """
futex 202 98 openat 257 56 clock_gettime 228 113 madvise 28 233 ioctl 16 29 fcntl 72 25 open 2 -1 openat2 437 437 clone3 435 435 statx 332 291
socketpair 53 199 preadv2 327 286 pwritev2 328 287 clock_getres 229 114 clock_nanosleep 230 115
timer_create 222 107 getsockopt 55 209 setsockopt 54 208
"""

# Looked at by the second, because supervisors do what programs may not.
_GUARDED = """
mmap 9 222 rt_sigaction 13 134 clone 56 220 prctl 157 167 socket 41 198 prlimit64 302 261 sched_setaffinity 203 122
"""

# For programs these report success and do nothing: a message could travel through the real ones, and programs use them for themselves only.
# Who has made itself wait for a processor would be excused from waiting. A session of its own would also be a group of its own to the scheduler, with a full share of the processor.
_IDLE_FOR_ALL = """
flock 73 32 fadvise64 221 223 readahead 187 213 sync_file_range 277 84 setpriority 141 140
"""
_IDLE = """
setsid 112 157
"""

# Without namespaces: looked at, because they tell of processes of the host.
_ASKING = """
getpgid 121 155 getsid 124 156 getpriority 140 141 sched_getaffinity 204 123 sched_getparam 143 121 sched_getscheduler 145 120
sched_getattr 315 275
"""

# Without namespaces: looked at, so that every folder of the scratch space can be counted.
_MODES = """
mkdir 83 -1 mkdirat 258 34 umask 95 166
"""

# Without namespaces: how full the host's disk is would tell what others write.
_DISKS = """
statfs 137 43 fstatfs 138 44
"""

_SIGNALS = "kill tgkill rt_sigqueueinfo rt_tgsigqueueinfo".split()

# Only for supervisors: the second filter takes them back.
_SUPERVISOR = """
memfd_create 319 279 connect 42 203 mount 165 40 umount2 166 39 capset 126 91 setgroups 116 159 setresuid 117 147 setresgid 119 149
unshare 272 97 pidfd_open 434 434 sendmsg 46 211 seccomp 317 277
landlock_create_ruleset 444 444 landlock_add_rule 445 445 landlock_restrict_self 446 446
"""

_SIGCHLD = 17
_FUTEX_PRIVATE, _FUTEX_CLOCK = 128, 256
_FUTEX_WAITS = (0, 9)
_MAP_SHARED_ANONYMOUS, _MAP_HUGETLB = 0x21, 0x40000
_ADVICE = (0, 1, 2, 4, 8, 10, 11, 14, 15, 16, 17)  # about one's own memory; 4 and 8 give pages back
_ADVICE_IDLE = (3, 12, 13)  # read ahead, merge equal pages: either way others could tell
_CLOCKS = 11  # the highest of the fixed clocks; negative ones belong to processes
_OWN_CLOCKS = (0xFFFFFFFA, 0xFFFFFFFE)  # processor time of this process, of this thread
_NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag that clone() takes, CLONE_NEWTIME included
_CLONE_THREAD, _CLONE_FILES, _CLONE_PIDFD = 0x10000, 0x400, 0x1000
_PRCTLS = (2, 3, 15, 16, 21, 23, 36, 38, 39, 0x53564D41)  # names, reads, orphans, no_new_privs, heap names
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # isatty, window size, bytes to read, non-blocking, close-on-exec
_LISTENING = (0xC0502100, 0xC0182101)  # to take what asks and to answer, with a descriptor that only supervisors have
_FCNTLS = (0, 1, 2, 3, 4, 1030, 1033, 1034)  # copies, flags, seals
_FCNTLS_IDLE = (6, 7, 37, 38)  # setting locks
_FCNTLS_LOCKED = (5, 36)  # asking for locks
_STREAM, _SEQPACKET = 1, 5
# Of sockets: sizes, times, states. Others give numbers that count for the whole machine (cookies, descriptors of processes), or run filters.
_SOCKET_OPTIONS = (2, 3, 4, 7, 8, 9, 13, 16, 17, 18, 19, 20, 21, 30, 38, 39, 66, 67)
_O_TRUNC, _O_ACCMODE = 0o1000, 3


_asking = _ASKING.split()[::3]


def _table(text, column):
    words = text.split()
    return {words[i]: int(words[i + 1 + column]) for i in range(0, len(words), 3) if words[i + 1 + column] != "-1"}


def _error(errno):
    """The call is not made and fails."""
    return _DONE | errno


class _Program:
    """Instructions, and the places that hold the program's own pid."""

    def __init__(self):
        self.code = []
        self.pid_slots = []

    def emit(self, opcode, value, jump_true=0, jump_false=0):
        self.code.append((opcode, jump_true, jump_false, value))

    def load(self, offset):
        self.emit(0x20, offset)

    def load_argument(self, index):
        self.load(16 + 8 * index)  # the low half; every argument looked at is 32 bits wide

    def mask(self, bits):
        self.emit(0x54, bits)

    def ret(self, action):
        self.emit(0x06, action)

    def fail(self, errno):
        self.ret(_error(errno))

    def ret_if_equal(self, value, action):
        self.emit(0x15, value, 0, 1)
        self.ret(action)

    def ret_if_any(self, values, action):
        for value in values:
            self.ret_if_equal(value, action)

    def ret_if_within(self, low, high, action):
        self.emit(0x35, low, 0, 2)
        self.emit(0x25, high, 1, 0)
        self.ret(action)

    def allow_if_own_pid(self):
        self.pid_slots.append(len(self.code))
        self.ret_if_equal(0, _ALLOW)

    def bytes(self):
        return b"".join(struct.pack("<HBBI", *instruction) for instruction in self.code)


# Calls of which one argument decides: its index, which of its bits (None: all), what becomes of which values, and of every other.
_BY_VALUE = {
    "madvise": (2, None, [(_ADVICE, _ALLOW), (_ADVICE_IDLE, _DONE)], _error(_EINVAL)),
    "preadv2": (5, None, [((0,), _ALLOW)], _error(_EOPNOTSUPP)),
    "pwritev2": (5, None, [((0,), _ALLOW)], _error(_EOPNOTSUPP)),
    "mkdir": (1, 0o700, [((0o700,), _ALLOW)], _error(_EPERM)),
    "mkdirat": (2, 0o700, [((0o700,), _ALLOW)], _error(_EPERM)),
    "umask": (0, 0o700, [((0,), _ALLOW)], _error(_EPERM)),
    "prctl": (0, None, [(_PRCTLS, _ALLOW)], _error(_EPERM)),
    "ioctl": (1, None, [(_IOCTLS + _LISTENING, _ALLOW)], _error(_ENOTTY)),
    "fcntl": (1, None, [(_FCNTLS, _ALLOW), (_FCNTLS_IDLE, _DONE), (_FCNTLS_LOCKED, _error(_ENOLCK))], _error(_EINVAL)),
    # Truncating through a read-only open would get past a read-only Landlock rule on kernels before 6.2.
    "open": (1, _O_TRUNC | _O_ACCMODE, [((_O_TRUNC,), _error(_EPERM))], _ALLOW),
    "openat": (2, _O_TRUNC | _O_ACCMODE, [((_O_TRUNC,), _error(_EPERM))], _ALLOW),
}


def _guard(program, name, processes):
    """The end of one guarded call: always returns."""
    if name in _BY_VALUE:
        index, bits, cases, otherwise = _BY_VALUE[name]
        program.load_argument(index)
        if bits is not None:
            program.mask(bits)
        for values, action in cases:
            program.ret_if_any(values, action)
        program.ret(otherwise)
    elif name in ("clone3", "openat2", "statx"):  # libc asks with the older call; statx tells numbers of mounts, which count for the whole machine
        program.fail(_ENOSYS)
    elif name == "futex":
        # Between threads of one process (private) as ever. Between processes nobody is woken, and waits are for the filters of a test's process.
        program.load_argument(1)
        program.mask(~_FUTEX_CLOCK & 0xFFFFFFFF)
        program.emit(0x45, _FUTEX_PRIVATE, 0, 1)
        program.ret(_ALLOW)
        program.ret_if_any(_FUTEX_WAITS, _ALLOW)
        program.ret(_DONE)
    elif name == "mmap":
        # Shared memory that no file bounds stays allocated when it is mapped no more, and no process shows it.
        program.load_argument(3)
        program.emit(0x45, _MAP_HUGETLB, 0, 1)
        program.fail(_EPERM)
        program.mask(_MAP_SHARED_ANONYMOUS)
        program.ret_if_equal(_MAP_SHARED_ANONYMOUS, _error(_EPERM))
        program.ret(_ALLOW)
    elif name == "rt_sigaction":
        # Children of a process that ignores SIGCHLD vanish, and their processor time with them. It can be asked for, not changed.
        program.load_argument(0)
        program.emit(0x15, _SIGCHLD, 1, 0)
        program.ret(_ALLOW)
        for half in (24, 28):  # the second argument, an address
            program.load(half)
            program.emit(0x15, 0, 1, 0)
            program.ret(_DONE)
        program.ret(_ALLOW)
    elif name in ("clock_gettime", "clock_getres", "clock_nanosleep", "timer_create"):
        program.load_argument(0)
        program.emit(0x25, _CLOCKS, 1, 0)
        program.ret(_ALLOW)
        program.ret_if_any(_OWN_CLOCKS, _ALLOW)
        program.fail(_EINVAL)
    elif name in _asking:
        program.load_argument(1 if name == "getpriority" else 0)
        program.ret_if_equal(0, _ALLOW)
        program.allow_if_own_pid()
        # Threads ask it of themselves by their own numbers, and libc does without when there is no such call.
        program.fail(_ENOSYS if name == "sched_getaffinity" else _EPERM)
    elif name == "clone":
        # A thread with descriptors of its own would hide them from the supervisor, which counts them by process.
        program.load_argument(0)
        program.mask(_NEW_NAMESPACES | _CLONE_THREAD | _CLONE_FILES | _CLONE_PIDFD)
        program.ret_if_equal(_CLONE_THREAD | _CLONE_FILES, _ALLOW)
        if processes:
            program.ret_if_any((0, _CLONE_FILES), _ALLOW)
        program.fail(_EPERM)
    elif name in ("getsockopt", "setsockopt"):
        program.load_argument(1)
        program.emit(0x15, 1, 1, 0)  # SOL_SOCKET
        program.fail(_ENOPROTOOPT)
        program.load_argument(2)
        program.ret_if_any(_SOCKET_OPTIONS, _ALLOW)
        program.fail(_ENOPROTOOPT)
    elif name == "socket":
        program.fail(_EAFNOSUPPORT)
    elif name == "socketpair":
        # AF_UNIX, and connected for good: a datagram socket can send to any path.
        program.load_argument(0)
        program.emit(0x15, 1, 1, 0)
        program.fail(_EAFNOSUPPORT)
        program.load_argument(1)
        program.mask(0xF)
        program.ret_if_any((_STREAM, _SEQPACKET), _ALLOW)
        program.fail(_EPERM)
    elif name in ("prlimit64", "sched_setaffinity"):
        program.load_argument(0)
        if processes:  # all that it can name are its own, but the supervisor
            program.ret_if_equal(1, _error(_EPERM))
            program.ret(_ALLOW)
        else:
            program.ret_if_equal(0, _ALLOW)
            program.allow_if_own_pid()
            program.fail(_EPERM)
    else:  # signals, without namespaces: only to oneself
        program.load_argument(0)
        program.allow_if_own_pid()
        program.fail(_EPERM)


def _add_guard(program, name, number, processes):
    body = _Program()
    _guard(body, name, processes)
    program.emit(0x15, number, 0, len(body.code))
    program.pid_slots += [len(program.code) + slot for slot in body.pid_slots]
    program.code += body.code


def _waits(program, column, action):
    """What becomes of a wait that another process could end. It is never made, so there is nobody to find or to wake on a page of a shared file:
    it comes back as if the value had changed, and whoever waits asks again (semaphores.py does it slowly)."""
    program.emit(0x15, _table(_GUARDED_FOR_ALL, column)["futex"], 0, 2 * len(_FUTEX_WAITS) + 3)
    program.load_argument(1)
    program.mask(~_FUTEX_CLOCK & 0xFFFFFFFF)
    program.ret_if_any(_FUTEX_WAITS, action)
    program.load(0)


def _start(machine):
    program = _Program()
    program.load(4)
    program.emit(0x15, _AUDIT_ARCH[machine], 1, 0)
    program.ret(_KILL)
    program.load(0)
    if machine == "x86_64":
        program.emit(0x35, _X32_BIT, 0, 1)
        program.ret(_KILL)
    return program


def _machine(machine):
    machine = machine or os.uname().machine
    if machine not in _COLUMN:
        raise OSError("no system call table for " + machine)
    return machine


def allow_list(machine=None):
    """The first filter."""
    machine = _machine(machine)
    column = _COLUMN[machine]
    program = _start(machine)
    program.ret_if_any(_table(_IDLE_FOR_ALL, column).values(), _DONE)
    for name, number in _table(_GUARDED_FOR_ALL, column).items():
        _add_guard(program, name, number, True)
    for name, number in _table(_NAMESPACED, column).items():
        if name in _SIGNAL_AT:
            program.emit(0x15, number, 0, 2 * len(_STOPS) + 2)
            program.load_argument(_SIGNAL_AT[name])
            program.ret_if_any(_STOPS, _error(_EPERM))
            program.ret(_ALLOW)
    allowed = {}
    for text in (_PLAIN, _NAMESPACED, _GUARDED, _IDLE, _ATTRIBUTES, _ASKING, _MODES, _DISKS, _SUPERVISOR):
        allowed.update(_table(text, column))
    for low, high in _ranges(sorted(allowed.values())):
        if low == high:
            program.ret_if_equal(low, _ALLOW)
        else:
            program.ret_if_within(low, high, _ALLOW)
    program.emit(0x25, _NEWEST, 0, 1)
    program.fail(_ENOSYS)
    program.fail(_EPERM)
    return program.bytes(), []


def asking(machine=None):
    """Where a program waits for the end of a thread, as the first thread of Java does all its life, asking again at once would take a processor. This
    filter has its supervisor asked instead (waits.py)."""
    machine = _machine(machine)
    program = _start(machine)
    _waits(program, _COLUMN[machine], _ASK)
    program.ret(_ALLOW)
    return program.bytes(), []


def guards(processes, machine=None, executes=False, asks=False):
    """The second filter, and the offsets of 32-bit words to fill with the program's own pid. `executes`: without processes, one may still become
    another program; Landlock says which. `asks`: the filter above is in force."""
    machine = _machine(machine)
    column = _COLUMN[machine]
    program = _start(machine)
    if not asks:
        _waits(program, column, _error(_EAGAIN))
    guarded = _table(_GUARDED, column)
    refused = _table(_SUPERVISOR, column)
    idle = _table(_IDLE, column)
    if not processes:
        for name, number in _table(_NAMESPACED, column).items():
            if executes and name == "execve":
                continue
            (guarded if name in _SIGNALS else refused)[name] = number
        guarded.update(_table(_ASKING, column))
        guarded.update(_table(_MODES, column))
        refused.update(_table(_DISKS, column))
        idle.update(_table(_ATTRIBUTES, column))
    program.ret_if_any(idle.values(), _DONE)
    for low, high in _ranges(sorted(refused.values())):
        program.ret_if_within(low, high, _error(_EPERM))
    for name, number in guarded.items():
        _add_guard(program, name, number, processes)
    program.ret(_ALLOW)
    return program.bytes(), [slot * 8 + 4 for slot in program.pid_slots]


def _ranges(numbers):
    ranges = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges
