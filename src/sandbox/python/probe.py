"""The self-test's attack in miniature: tries to get out and prints one line for everything that worked. Runs as a program would.

First line of stdin: JSON with a file it must not read, a port it must not reach, a process it must not touch, folders it must not write to,
whether it runs in namespaces of its own, and its limits.
"""

import ctypes
import fcntl
import json
import mmap
import os
import socket
import struct

facts = json.loads(input())
libc = ctypes.CDLL(None, use_errno=True)


def attempt(name, action):
    try:
        worked = action()
    except (OSError, ValueError, MemoryError):
        return
    if worked is not False:
        print("could " + name)


def opens(path, mode="rb"):
    def action():
        with open(path, mode) as file:
            file.read(1) if "r" in mode else file.write(b"x")

    return action


def connects(family, kind, address):
    def action():
        with socket.socket(family, kind) as connection:
            connection.settimeout(1)
            connection.connect(address)
            connection.send(b"x")

    return action


def called(number, *arguments):
    return lambda: libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in arguments]) >= 0


def forks():
    """More processes than allowed, all alive at once."""
    children = []
    try:
        for _ in range(facts["processes"] + 1):
            pid = os.fork()
            if pid == 0:
                os.read(hold[0], 1)
                os._exit(0)
            children.append(pid)
    finally:
        os.write(hold[1], b"x" * (len(children) + 1))
        for pid in children:
            os.waitpid(pid, 0)


def fills():
    """More than the scratch space, in files that are each small enough."""
    for number in range(facts["scratchBytes"] // facts["fileBytes"] + 2):
        with open("fill-%d" % number, "wb") as file:
            file.write(b"x" * (facts["fileBytes"] - 1))


def one_large_file():
    with open("large", "wb") as file:
        file.write(b"x" * (facts["fileBytes"] + 4096))


def touches():
    before = os.stat(os.devnull).st_mtime_ns
    os.utime(os.devnull)
    return os.stat(os.devnull).st_mtime_ns != before


hold = os.pipe()
x86 = os.uname().machine == "x86_64"
# name, number on x86-64, number on arm64
calls = """
unshare 272 97 mount 165 40 ptrace 101 117 bpf 321 280 memfd_create 319 279 keyctl 250 219 io_uring_setup 425 425 setuid 105 146
clone 56 220 shmget 29 194 process_vm_readv 310 270 mincore 27 232 sysinfo 99 179 pidfd_open 434 434
""".split()
number = {name: int(calls[3 * index + (1 if x86 else 2)]) for index, name in enumerate(calls[::3])}
shared = os.open(os.__file__, os.O_RDONLY)
pair = socket.socketpair()

for path in facts["secrets"]:
    attempt("read %s" % path, opens(path))
for folder in facts["closed"]:
    attempt("write to %s" % folder, opens(os.path.join(folder, "probe"), "wb"))
attempt("open a TCP connection", connects(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", facts["port"])))
attempt("send a UDP packet", connects(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", facts["port"])))
attempt("open a netlink socket", connects(16, socket.SOCK_RAW, (0, 0)))
attempt("reach the control socket", connects(socket.AF_UNIX, socket.SOCK_STREAM, facts["controlSocket"]))
attempt("signal its supervisor", lambda: os.kill(os.getppid(), 0) if not facts["namespaces"] else False)
attempt("signal a process outside", lambda: os.kill(facts["pid"], 0))
attempt("read its supervisor's memory", opens("/proc/%d/mem" % os.getppid()))
attempt("limit its supervisor", lambda: libc.prlimit(os.getppid(), 7, (ctypes.c_ulong * 2)(1, 1), None) == 0)
attempt("use a new user namespace", called(number["unshare"], 0x10000000))
attempt("clone into a new user namespace", called(number["clone"], 0x10000000 | 17, 0, 0, 0, 0))
attempt("mount", lambda: libc.mount(b"x", b"/tmp", b"tmpfs", 0, b"") == 0)
attempt("trace its supervisor", called(number["ptrace"], 16, os.getppid(), 0, 0))
attempt("become root", called(number["setuid"], 0))
attempt("see its supervisor", lambda: facts["namespaces"] and os.path.exists("/proc/1"))
attempt("share memory without a file", lambda: len(mmap.mmap(-1, 4096)))
attempt("ask who locks a shared file", lambda: fcntl.fcntl(shared, fcntl.F_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 1, 0)))
attempt("leave a hint with a shared file", lambda: fcntl.fcntl(shared, 1036, struct.pack("Q", 1)))
attempt("ask what the page cache holds", lambda: os.preadv(shared, [bytearray(1)], 0, getattr(os, "RWF_NOWAIT", 8)))
attempt("touch a device that all see", touches)
attempt("ask for a number that counts for the whole machine", lambda: pair[0].getsockopt(socket.SOL_SOCKET, 57, 8))
attempt("hold descriptors in messages", lambda: pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", 0))]))
attempt("send datagrams to paths", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
for name in ("bpf", "memfd_create", "keyctl", "io_uring_setup", "shmget", "process_vm_readv", "mincore", "sysinfo", "pidfd_open"):
    attempt("call " + name, called(number[name], os.getpid() if name == "pidfd_open" else 0, 0, 0, 0, 0))
if libc.prctl(21, 0, 0, 0, 0) != 2:
    print("runs without a seccomp filter")
if libc.prctl(39, 0, 0, 0, 0) != 1:
    print("may gain privileges")
held = (ctypes.c_uint32 * 6)()
if libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), held) != 0 or any(held):
    print("holds capabilities: %s" % list(held))
if facts["namespaces"]:
    try:
        others = [name for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]
    except OSError:
        others = []
    if others:
        print("sees other processes: " + " ".join(others))
    attempt("run more processes than allowed", forks)
    attempt("fill more than its scratch space", fills)
else:
    attempt("start a process", os.fork)
attempt("write a file past the limit", one_large_file)
for name in os.environ:
    if name not in facts["environment"]:
        print("sees the environment variable " + name)
print("done")
