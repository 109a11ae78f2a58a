// Ways in which one program could tell another one bit, through what they share: read-only files, the kernel's counters, the processor. A sender
// gets the bit on stdin; a receiver prints what it found. "live" ones run side by side, the others one after the other.
export interface Channel {
  name: string;
  live: boolean;
  /** Python: `bit` is True or False. */
  send: string;
  /** Python: prints what it sees. */
  receive: string;
  /** The receiver gets the bit anyway: what a channel looks like that is open for certain. */
  knowsBit?: boolean;
  /** Known to be open, and why it stays so; absent: must be closed. */
  open?: string;
  /** Where it is open; absent: at both levels. */
  openAt?: "jail" | "landlock";
}

export const isOpen = (channel: Channel, level: string) =>
  channel.open !== undefined && (channel.openAt === undefined || channel.openAt === level);

const sharedFile = "import os\nfd = os.open(os.__file__, os.O_RDONLY)\n";
/** Bytes of a shared file that nothing reads in passing. */
const coldFile =
  "import os, _pydecimal\npath = _pydecimal.__file__\nfd = os.open(path, os.O_RDONLY)\nsize = os.fstat(fd).st_size\n";
const libc = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.syscall.restype = ctypes.c_long\n";
const hold = "import time\ntime.sleep(0.8)\n";
const wait = "import time\ntime.sleep(0.4)\n";

export const channels: readonly Channel[] = [
  {
    name: "byte locks on a shared file",
    live: true,
    send: `${sharedFile}import fcntl\nif bit: fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 10**6)\n${hold}`,
    receive: `${wait}${sharedFile}import fcntl, struct\nr = fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 10**6, 1, 0))\nprint(struct.unpack("hhqqi", r)[0] != fcntl.F_UNLCK)`,
  },
  {
    name: "open file description locks",
    live: true,
    send: `${sharedFile}import fcntl, struct\nif bit: fcntl.fcntl(fd, 37, struct.pack("hhqqi", 0, 0, 10**6, 1, 0))\n${hold}`,
    receive: `${wait}${sharedFile}import fcntl, struct\nr = fcntl.fcntl(fd, 36, struct.pack("hhqqi", 1, 0, 10**6, 1, 0))\nprint(struct.unpack("hhqqi", r)[0] != 2)`,
  },
  {
    name: "flock on a shared file",
    live: true,
    send: `${sharedFile}import fcntl\nif bit: fcntl.flock(fd, fcntl.LOCK_EX)\n${hold}`,
    receive: `${wait}${sharedFile}import fcntl\ntry:\n    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    print(False)\nexcept OSError:\n    print(True)`,
  },
  {
    name: "page cache: fadvise and preadv2(RWF_NOWAIT)",
    live: false,
    send: `${coldFile}if bit: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)\nelse: os.read(fd, size)`,
    receive: `${coldFile}try:\n    print(os.preadv(fd, [bytearray(4096)], size // 2, os.RWF_NOWAIT) <= 0)\nexcept BlockingIOError:\n    print(True)`,
  },
  {
    name: "page cache: fadvise and mincore",
    live: false,
    send: `${coldFile}if bit: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)\nelse: os.read(fd, size)`,
    receive: `${coldFile}${libc}import mmap\nlibc.mmap.restype = ctypes.c_void_p\nat = libc.mmap(None, ctypes.c_size_t(size), 1, 2, fd, ctypes.c_long(0))\nv = (ctypes.c_ubyte * 999)()\nif libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), v): raise OSError(ctypes.get_errno(), "mincore")\nprint(v[20] & 1 == 0)`,
  },
  {
    name: "page cache: fadvise and cachestat",
    live: false,
    send: `${coldFile}if bit: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)\nelse: os.read(fd, size)`,
    receive: `${coldFile}${libc}r = (ctypes.c_uint64 * 2)(0, size)\ns = (ctypes.c_uint64 * 5)()\nif libc.syscall(ctypes.c_long(451), ctypes.c_uint(fd), r, s, 0): raise OSError(ctypes.get_errno(), "cachestat")\nprint(s[0] == 0)`,
  },
  {
    name: "page cache: fadvise and the time of a read",
    live: false,
    send: `${coldFile}if bit: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)\nelse: os.read(fd, size)`,
    receive: `${coldFile}import resource\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_inblock\nos.pread(fd, 4096, size // 2)\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_inblock > before)`,
  },
  {
    name: "page cache: madvise(MADV_PAGEOUT)",
    live: false,
    send: `${coldFile}import mmap\nm = mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)\nm[:]\nif bit:\n    try: m.madvise(21)\n    except OSError: pass`,
    receive: `${coldFile}import resource\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_inblock\nos.pread(fd, 4096, size // 2)\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_inblock > before)`,
  },
  {
    name: "write hints kept with a file",
    live: false,
    send: `${sharedFile}import fcntl, struct\nfcntl.fcntl(fd, 1036, struct.pack("Q", 5 if bit else 1))`,
    receive: `${sharedFile}import fcntl, struct\nprint(struct.unpack("Q", fcntl.fcntl(fd, 1035, struct.pack("Q", 0)))[0] == 5)`,
  },
  {
    name: "times and attributes of a shared file",
    live: false,
    send: `${sharedFile}try:\n    if bit: os.utime(os.__file__)\n    os.setxattr(os.__file__, "user.x", b"1")\nexcept OSError: pass`,
    receive: `${sharedFile}import time\ns = os.stat(os.__file__)\nprint(time.time() - s.st_mtime < 60, len(os.listxattr(os.__file__)) if hasattr(os, "listxattr") else 0)`,
  },
  {
    name: "free memory of the machine (sysinfo)",
    live: true,
    send: `if bit: x = bytearray(b"x" * (400 << 20))\n${hold}`,
    receive: `${libc}class S(ctypes.Structure): _fields_ = [("up", ctypes.c_long), ("loads", ctypes.c_ulong * 3), ("total", ctypes.c_ulong), ("free", ctypes.c_ulong), ("rest", ctypes.c_byte * 200)]\ndef free():\n    s = S()\n    if libc.sysinfo(ctypes.byref(s)): raise OSError(ctypes.get_errno(), "sysinfo")\n    return s.free\na = free()\n${wait}${wait}print(abs(free() - a) > 200 << 20)`,
  },
  {
    name: "processes of others (/proc, kill, getpgid)",
    live: true,
    send: `import threading, time\nif bit:\n    for _ in range(30): threading.Thread(target=time.sleep, args=(0.8,)).start()\n${hold}`,
    receive: `${wait}import os\nme = os.getpid()\ndef there(p):\n    try:\n        os.getpgid(p)\n        return True\n    except OSError:\n        return False\nprint(sum(there(p) for p in range(max(2, me - 300), me + 300) if p != me) > 25)`,
  },
  {
    name: "System V shared memory, message queues, keys",
    live: false,
    send: `${libc}if bit: libc.shmget(4242, 4096, 0o1666); libc.syscall(ctypes.c_long(248), b"user", b"whet", b"1", 1, -5)`,
    receive: `${libc}print(libc.shmget(4242, 4096, 0o666) >= 0)`,
  },
  {
    name: "abstract and named sockets",
    live: true,
    send: `import socket\nif bit:\n    s = socket.socket(socket.AF_UNIX)\n    s.bind("\\0whet-channel")\n    s.listen()\n${hold}`,
    receive: `${wait}import socket\ntry:\n    socket.socket(socket.AF_UNIX).connect("\\0whet-channel")\n    print(True)\nexcept ConnectionRefusedError:\n    print(False)`,
  },
  {
    name: "times of devices",
    live: false,
    send: `import os\ntry:\n    if bit: os.utime("/dev/null")\nexcept OSError: pass`,
    receive: `import os, time\nprint([time.time() - os.stat("/dev/" + n).st_mtime < 3 for n in ("null", "urandom")])`,
  },
  {
    name: "numbers of processes' descriptors (a counter of the whole machine)",
    live: false,
    send: `import os\ntry:\n    for _ in range(300 if bit else 0):\n        p = os.fork()\n        if p == 0: os._exit(0)\n        os.waitpid(p, 0)\nexcept OSError: pass`,
    receive: `import os, socket\ndef of(make):\n    try: return os.fstat(make()).st_ino\n    except OSError as e: return e.errno\na, b = socket.socketpair()\nprint([of(lambda: os.pidfd_open(os.getpid())), of(lambda: a.getsockopt(1, 77))])`,
  },
  {
    name: "cookies of sockets (a counter of the whole machine)",
    live: false,
    send: `import socket\nfor _ in range(300 if bit else 0):\n    try: socket.socketpair()[0].getsockopt(1, 57, 8)\n    except OSError: pass`,
    receive: "import socket\nprint(socket.socketpair()[0].getsockopt(1, 57, 8).hex())",
  },
  {
    name: "sockets, mounts, groups and shared pages (/proc)",
    live: true,
    send: `import os, socket\nheld = [socket.socketpair() for _ in range(40 if bit else 0)]\ntry:\n    for _ in range(8 if bit else 0):\n        if os.fork() == 0: break\nexcept OSError: pass\n${hold}`,
    receive: `${wait}import os\ndef of(name):\n    try: return len(open("/proc/self/" + name).read())\n    except OSError as e: return e.errno\nprint([of(n) for n in ("net/unix", "net/sockstat", "autogroup", "mountinfo", "cgroup", "smaps", "numa_maps", "sched", "fdinfo/1", "status")])`,
  },
  {
    name: "descriptors in messages (a limit of the user)",
    live: true,
    send: `import array, os, socket, time\nheld = []\nfor _ in range(300 if bit else 0):\n    try:\n        if not held: held.append(socket.socketpair())\n        held[0][0].setblocking(False)\n        held[0][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 10))])\n    except OSError: break\n${hold}`,
    receive: `${wait}import array, socket\na, b = socket.socketpair()\ntry:\n    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])\n    print("sent")\nexcept OSError as e: print(e.errno)`,
  },
  {
    name: "room in new pipes (a limit of the user)",
    live: true,
    send: `import os, time\nif bit:\n    try:\n        for _ in range(3):\n            if os.fork() == 0: break\n    except OSError: pass\n    held = [os.pipe() for _ in range(120)]\n${hold}`,
    receive: `${wait}import os\nr, w = os.pipe()\nos.set_blocking(w, False)\nn = 0\ntry:\n    while True: n += os.write(w, b"x" * 4096)\nexcept BlockingIOError: print(n)`,
  },
  {
    name: "numbers of file systems: who is alive",
    live: true,
    openAt: "jail",
    open: "the kernel gives the lowest free number to each new file system",
    send: `import time\nif bit: time.sleep(0.9)`,
    receive: "import os\nprint('number', os.stat('/tmp').st_dev)",
  },
  {
    name: "processes of others (attributes in /proc)",
    live: true,
    send: `import threading, time\nif bit:\n    for _ in range(30): threading.Thread(target=time.sleep, args=(0.8,)).start()\n${hold}`,
    receive: `${wait}import os\nme = os.getpid()\ndef count(p):\n    try: return os.stat("/proc/%d/task" % p).st_nlink\n    except OSError: return 0\nprint(any(20 < count(p) < 60 for p in range(max(2, me - 100), me + 100) if p != me))`,
  },
  {
    name: "numbers of new files",
    live: false,
    openAt: "landlock",
    open: "scratch folders lie on a file system of the host",
    send: `import os\nfor n in range(500 if bit else 0): open("f%d" % n, "w").close()\n`,
    receive: "import os\nopen('x', 'w').close()\nprint('number', os.stat('x').st_ino)",
  },
  {
    name: "when a shared file was last read",
    live: false,
    send: `${coldFile}if bit: os.pread(fd, 4096, 0)`,
    receive: `${coldFile}import time\nprint(time.time() - os.stat(path).st_atime < 3)`,
  },
  {
    name: "numbers of pipes (a counter of the whole machine)",
    live: false,
    open: "a file's number can be asked for, and every new pipe of the machine takes the next one",
    send: `import os\nfor _ in range(40_000 if bit else 0):\n    a, b = os.pipe(); os.close(a); os.close(b)`,
    receive: "import os\nprint('number', os.fstat(os.pipe()[0]).st_ino)",
  },
  {
    name: "pages that nobody read before (write once)",
    live: false,
    send: `${coldFile}if bit: os.pread(fd, 4096, size // 2)`,
    receive: `${coldFile}import resource\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_inblock\nos.pread(fd, 4096, size // 2)\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_inblock == before)`,
  },
  {
    name: "waiting on a shared page, woken by the end of a thread",
    live: true,
    send: `${libc}import threading, time\nat = ctypes.cast(libc.printf, ctypes.c_void_p).value & ~3\ntime.sleep(0.5)\nif bit:\n    t = threading.Thread(target=lambda: libc.syscall(ctypes.c_long(218), ctypes.c_void_p(at)))\n    t.start()\n    t.join()\ntime.sleep(0.3)`,
    receive: `${libc}at = ctypes.cast(libc.printf, ctypes.c_void_p).value & ~3\nvalue = ctypes.c_uint.from_address(at).value\nclass T(ctypes.Structure): _fields_ = [("s", ctypes.c_long), ("n", ctypes.c_long)]\nprint(libc.syscall(ctypes.c_long(202), ctypes.c_void_p(at), 0, ctypes.c_uint(value), ctypes.byref(T(0, 900_000_000)), None, 0), ctypes.get_errno())`,
  },
  {
    name: "waiting on a shared page (futex)",
    live: true,
    send: `${libc}at = ctypes.cast(libc.printf, ctypes.c_void_p).value & ~3\nvalue = ctypes.c_uint.from_address(at).value\nclass T(ctypes.Structure): _fields_ = [("s", ctypes.c_long), ("n", ctypes.c_long)]\nif bit: libc.syscall(ctypes.c_long(202), ctypes.c_void_p(at), 0, ctypes.c_uint(value), ctypes.byref(T(0, 800_000_000)), None, 0)\nelse:\n    import time; time.sleep(0.8)`,
    receive: `${wait}${libc}at = ctypes.cast(libc.printf, ctypes.c_void_p).value & ~3\nprint(libc.syscall(ctypes.c_long(202), ctypes.c_void_p(at), 1, 1, None, None, 0) > 0)`,
  },
  {
    name: "numbers of mounts (statx)",
    live: true,
    send: `import time\nif bit: time.sleep(0.9)`,
    receive:
      `${libc}b = (ctypes.c_ubyte * 256)()\nfound = []\nfor mask in (0x1000, 0x4000):\n    found.append((libc.syscall(ctypes.c_long(332 if os.uname().machine == "x86_64" else 291), -100, b"/tmp", 0, mask, b), bytes(b[0x90:0x98])))\nprint(found)`.replace(
        "import ctypes",
        "import ctypes, os",
      ),
  },
  {
    name: "numbers of namespaces (links in /proc/self/ns)",
    live: true,
    openAt: "jail",
    open: "a process may read its own links, and each new namespace gets the lowest free number",
    send: `import time\nif bit: time.sleep(0.9)`,
    receive: "import os\nprint('number', os.readlink('/proc/self/ns/pid')[5:-1])",
  },
  {
    name: "room in pipes, many processes",
    live: true,
    openAt: "jail",
    open: "pages of pipes count per user of the host, and programs are looked at only after 100 ms",
    send: `import os, time\nif bit:\n    for _ in range(12):\n        if os.fork() == 0:\n            held = []\n            try:\n                while True: held.append(os.pipe())\n            except OSError: pass\n            time.sleep(0.3)\n            os._exit(0)\ntime.sleep(0.3)`,
    receive: `import os, time\nend, least = time.time() + 0.5, 1 << 20\nwhile time.time() < end:\n    r, w = os.pipe()\n    os.set_blocking(w, False)\n    n = 0\n    try:\n        while True: n += os.write(w, b"x" * 4096)\n    except BlockingIOError: least = min(least, n)\n    os.close(r); os.close(w)\n    time.sleep(0.002)\nprint(least)`,
  },
  {
    name: "pending signals (a limit of the user)",
    live: true,
    send: `${libc}import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {40})\nfor _ in range(500 if bit else 0): libc.sigqueue(os.getpid(), 40, ctypes.c_void_p(0))\n${hold}`,
    receive: `${wait}${libc}import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {40})\nn = 0\nwhile n < 600 and libc.sigqueue(os.getpid(), 40, ctypes.c_void_p(0)) == 0: n += 1\nprint(n)`,
  },
  {
    name: "numbers of sockets, timers, queues, event descriptors",
    live: false,
    send: `import os, select, socket\nheld = [socket.socketpair() for _ in range(100 if bit else 0)] + [select.epoll() for _ in range(20 if bit else 0)]`,
    receive: `${libc}import os, select\nt = ctypes.c_int(-1)\nlibc.syscall(ctypes.c_long(222 if os.uname().machine == "x86_64" else 107), 1, None, ctypes.byref(t))\ne = select.epoll()\nprint(t.value, os.fstat(e.fileno()).st_ino, os.getpriority(0, 0))`,
  },
  {
    name: "files that are read, listed and asked for: numbers, times and room of their file systems",
    live: false,
    send: `import os\nfor folder in ("/usr/lib", os.path.dirname(os.__file__)):\n    for name in sorted(os.listdir(folder))[:200] if bit else ():\n        try: os.stat(folder + "/" + name); open(folder + "/" + name, "rb").read(10)\n        except OSError: pass`,
    receive: `import os\nfound = []\nfor path in ("/usr/lib", os.__file__, "/dev/null", "/usr/bin", os.path.dirname(os.__file__)):\n    s = os.stat(path)\n    found.append((s.st_ino, s.st_nlink, s.st_size, s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns))\n    try:\n        v = os.statvfs(path)\n        found.append((v.f_bfree, v.f_ffree, v.f_files))\n    except OSError as e: found.append(e.errno)\nprint(hash(str(found)))`,
  },
  {
    name: "scratch files: their numbers and the room beside them",
    live: false,
    openAt: "landlock",
    open: "scratch folders lie on a file system of the host",
    send: `import os\nfor n in range(300 if bit else 0): open("f%d" % n, "w").write("x" * 9999)`,
    receive: `import os\nopen("x", "w").close()\nfound = [os.stat("x").st_ino]\ntry: found += [os.statvfs(".").f_bfree, os.statvfs(".").f_ffree]\nexcept OSError: pass\nprint(found)`,
  },
  {
    name: "modules of the kernel: an executable of an unknown kind, a family of sockets",
    live: false,
    send: `import os, socket\nif bit:\n    open("x", "wb").write(b"\\xfe\\xed\\xfa\\xce" * 99)\n    try: os.chmod("x", 0o755); os.fork() or os.execv("./x", ["x"])\n    except OSError: pass\n    for family in range(3, 45):\n        try: socket.socket(family)\n        except OSError: pass`,
    receive: `import os, socket\nfound = []\nfor family in (12, 21, 38, 40):\n    try: found.append(socket.socket(family).family)\n    except OSError as e: found.append(e.errno)\nprint(found, os.path.exists("/sys"), os.path.exists("/proc/modules"))`,
  },
  {
    name: "waiting for all processors (membarrier)",
    live: true,
    send: `${libc}import os, threading, time\nend = time.time() + 0.8\ndef ask():\n    while time.time() < end and libc.syscall(ctypes.c_long(324 if os.uname().machine == "x86_64" else 283), 1, 0, 0) == 0: pass\nasking = [threading.Thread(target=ask) for _ in range(8 if bit else 0)]\nfor t in asking: t.start()\nfor t in asking: t.join()\ntime.sleep(max(0, end - time.time()))`,
    receive: `${libc}import os, time\ntime.sleep(0.25)\ntimes, end = [], time.time() + 0.45\nwhile time.time() < end:\n    start = time.perf_counter_ns()\n    if libc.syscall(ctypes.c_long(324 if os.uname().machine == "x86_64" else 283), 1, 0, 0): raise OSError(ctypes.get_errno(), "membarrier")\n    times.append(time.perf_counter_ns() - start)\nprint("share", sorted(times)[len(times) // 2] / 1e6)`,
  },
  {
    name: "the processor itself (contention)",
    live: true,
    open: "programs that run at the same moment slow each other down",
    send: `import os, time\nend = time.time() + 0.9\nif bit:\n    import threading\n    try:\n        for _ in range(3):\n            if os.fork() == 0: break\n    except OSError: pass\n    while time.time() < end: pass\nelse: time.sleep(0.9)`,
    receive:
      "import time\ntime.sleep(0.15)\nw, c = time.time(), time.process_time()\nwhile time.time() - w < 0.5: pass\nshare = (time.process_time() - c) / 0.5\nprint('share', round(share, 2))",
  },
];
