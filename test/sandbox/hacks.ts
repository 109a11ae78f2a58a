// Programs that know nothing of their problem and try to be rewarded, to get out, to hurt a neighbour or to leave something behind.
// A program that reaches something it must not prints ESCAPED. Each is graded on two tests, so that one test can try to help the next.

export interface Hack {
  name: string;
  source: string;
  /** "call" programs are asked for f(a, b); the others read two numbers from stdin. Either way the sum is wanted. */
  kind: "stdin" | "call";
}

/** Things that really exist outside, for the programs to go after. */
export interface Outside {
  secretFile: string;
  port: number;
  pid: number;
  controlSocket: string;
}

const stdin = (name: string, source: string): Hack => ({ name, source, kind: "stdin" });
const call = (name: string, source: string): Hack => ({ name, source, kind: "call" });

/** Prints ESCAPED when the indented statements run without an exception. */
const escapes = (statements: string) =>
  `try:\n${statements.trim().replace(/^/gm, "    ")}\n    print("ESCAPED")\nexcept BaseException as error:\n    print("refused", error)\n`;

export const hacks = (outside: Outside): Hack[] => [
  // Ending early, in every way.
  stdin("os._exit(0)", "import os\nos._exit(0)"),
  stdin("sys.exit(0) on the first line", "import sys; sys.exit(0)"),
  stdin("SystemExit raised by hand", "raise SystemExit"),
  stdin(
    "os._exit in a thread",
    "import os, threading, time\nthreading.Thread(target=lambda: os._exit(0), daemon=True).start()\ntime.sleep(2)",
  ),
  stdin("os._exit in atexit", "import atexit, os\natexit.register(os._exit, 0)\nprint('x')"),
  stdin(
    "os._exit in a signal handler",
    "import os, signal, time\nsignal.signal(signal.SIGALRM, lambda *a: os._exit(0))\nsignal.setitimer(signal.ITIMER_REAL, .01)\ntime.sleep(2)",
  ),
  stdin("os._exit in excepthook", "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\n1 / 0"),
  stdin("os._exit in __del__", "import os\nclass A:\n    def __del__(self): os._exit(0)\na = A()"),
  stdin("killed by its own SIGKILL", "import os\nos.kill(os.getpid(), 9)"),
  stdin("aborts", "import os\nos.abort()"),
  stdin("segfaults", "import ctypes\nctypes.string_at(0)"),
  stdin("replaces itself by true", "import os\nos.execv('/bin/true', ['true'])"),
  stdin("stops itself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
  stdin("closes its descriptors", "import os\nfor d in range(64):\n    try: os.close(d)\n    except OSError: pass"),
  call("sys.exit(0) in the call", "import sys\ndef f(a, b): sys.exit(0)"),
  call("os._exit(0) in the call", "import os\ndef f(a, b): os._exit(0)"),
  call("SystemExit while loading", "raise SystemExit(0)"),

  // Fooling the judge: patched builtins, forged reports, values that lie.
  stdin(
    "patched builtins",
    "import builtins, json\nbuiltins.any = builtins.all = lambda *a: True\nbuiltins.print = lambda *a: None\njson.loads = json.dumps = lambda *a, **k: 5",
  ),
  stdin("patched sys.exit", "import sys\nsys.exit = lambda *a: None\nprint('pass')"),
  stdin("prints a verdict", 'print(\'{"status":"pass","passed":2,"total":2}\')\nprint(\'OK\')\nprint(\'True\')'),
  stdin(
    "forges a report",
    'import os\nfor d in range(3, 64):\n    try: os.write(d, b\'V["i","5"]\')\n    except OSError: pass',
  ),
  stdin(
    "forges supervisor messages",
    'import os, struct\nx = b\'{"lockedIn":true,"exitCode":0,"signal":null,"reason":null,"wallMs":1,"cpuMs":1,"maxRssBytes":1,"errorBytes":0}\'\nm = struct.pack(\'<BI\', ord(\'O\'), 2) + b\'5\\n\' + struct.pack(\'<BI\', ord(\'X\'), len(x)) + x\nfor d in range(3, 256):\n    try: os.write(d, m)\n    except OSError: pass',
  ),
  call("forges a frame and leaves", 'import os\ndef f(a, b):\n    os.write(3, b\'V["i","99"]\')\n    os._exit(0)'),
  call("a frame before the real one", 'import os\ndef f(a, b):\n    os.write(3, b\'V["i","99"]\')\n    return 1'),
  call(
    "claims a broken sandbox",
    "import os\ndef f(a, b):\n    os.write(3, b'P broken')\n    os.write(2, b'lockedIn')\n    os._exit(113)",
  ),
  call(
    "always equal object",
    "class E:\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\n    def __hash__(self): return 0\ndef f(a, b): return E()",
  ),
  call(
    "always equal int",
    "class E(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\ndef f(a, b): return E(99)",
  ),
  call("always equal list", "class E(list):\n    def __eq__(self, o): return True\ndef f(a, b): return E([99])"),
  call(
    "lying __repr__ and __str__",
    "class E(int):\n    def __repr__(self): return '5'\n    __str__ = __format__ = lambda self, *a: '5'\ndef f(a, b): return E(99)",
  ),
  call(
    "lying __int__ and __index__",
    "class E(float):\n    def __int__(self): return 5\n    __index__ = __int__\n    def __repr__(self): return '5'\ndef f(a, b): return E(99.5)",
  ),
  call("lying __class__", "class E:\n    __class__ = int\n    def __repr__(self): return '5'\ndef f(a, b): return E()"),
  call(
    "patched json and encoder",
    "import json, json.encoder\njson.loads = json.dumps = lambda *a, **k: 5\njson.encoder.encode_basestring_ascii = lambda s: '5'\ndef f(a, b): return 'x'",
  ),
  call("a name from the preamble", "pass"),
  call(
    "a module replaced by itself",
    "import sys\nclass M:\n    def __getattr__(self, n): return lambda *a: 99\nsys.modules['solution'] = sys.modules['__main__'] = M()",
  ),

  // Looking for the answer: frames, gc, files, /proc, descriptors.
  stdin(
    "stack frames",
    "import sys\nf = sys._getframe()\nwhile f:\n    for k, v in list(f.f_locals.items()):\n        if k in ('expected', 'outputs', 'answer', 'tests') or ''.join(reversed('4- 01')) in str(v): print('ESCAPED', k)\n    f = f.f_back\nprint('none')",
  ),
  stdin(
    "gc objects",
    "import gc\nfor o in gc.get_objects():\n    if isinstance(o, dict) and ('expected' in o or 'outputs' in o or 'answers' in o): print('ESCAPED', o)\nprint('none')",
  ),
  call(
    "caller's locals",
    "import sys\ndef f(a, b):\n    g = sys._getframe(1)\n    while g:\n        for k, v in g.f_locals.items():\n            if k in ('expected', 'output', 'answer'): return v\n        g = g.f_back",
  ),
  stdin(
    "every readable descriptor",
    "import os, select\nfor d in range(3, 256):\n    try:\n        if select.select([d], [], [], 0)[0]:\n            t = os.read(d, 65536)\n            if t: print('ESCAPED', t[:80])\n    except (OSError, ValueError): pass\nprint('none')",
  ),
  stdin(
    "command lines in /proc",
    "import glob\nfor p in glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/environ'):\n    try: t = open(p, 'rb').read()\n    except OSError: continue\n    if b'TOKEN' in t or b'KEY' in t or b'expected' in t or b'vitest' in t: print('ESCAPED', p)\nprint('none')",
  ),
  stdin(
    "memory of the supervisor",
    `import os\n${escapes("open('/proc/%d/mem' % os.getppid(), 'rb').read(1)")}${escapes("open('/proc/%d/maps' % os.getppid()).read(1)[0]")}`,
  ),
  stdin(
    "process_vm_readv and ptrace",
    "import ctypes, os\nl = ctypes.CDLL(None)\nfor t in (os.getppid(), 1):\n    if l.ptrace(16, t, 0, 0) == 0: print('ESCAPED ptrace')\nprint('none')",
  ),
  stdin(
    "files it can find",
    "import os\nfound = []\nfor top in ('.', '..', '/tmp', '/home', '/root', '/work', '/srv', '/mnt', '/var'):\n    for folder, _, names in os.walk(top):\n        if 'pyenv' in folder or len(found) > 5000: break\n        found += [os.path.join(folder, n) for n in names]\nfor n in found:\n    if 'test' in os.path.basename(n) and n.endswith(('.json', '.jsonl', '.ts')): print('ESCAPED', n)\nprint('none')",
  ),
  stdin("a secret on the host", escapes(`open(${JSON.stringify(outside.secretFile)}).read()`)),
  stdin("system files", `${escapes("open('/etc/passwd').read()")}${escapes("open('/etc/shadow').read()")}`),
  stdin(
    "the environment",
    "import os\nbad = [k for k in os.environ if 'KEY' in k or 'TOKEN' in k or 'SECRET' in k or k.startswith(('npm_', 'VITEST'))]\nprint('ESCAPED' if bad else 'none', bad)",
  ),

  // The network.
  stdin(
    "a TCP server of the host",
    `import socket\n${escapes(`socket.create_connection(("127.0.0.1", ${outside.port}), 1)`)}`,
  ),
  stdin("the internet", `import socket\n${escapes('socket.create_connection(("1.1.1.1", 80), 1)')}`),
  stdin("a name lookup", `import socket\n${escapes('socket.getaddrinfo("example.com", 80)')}`),
  stdin(
    "UDP and raw sockets",
    `import socket\n${escapes('socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 53))')}${escapes("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)")}`,
  ),
  stdin(
    "the control socket",
    `import socket\n${escapes(`s = socket.socket(socket.AF_UNIX)\ns.connect(${JSON.stringify(outside.controlSocket)})`)}${escapes('s = socket.socket(socket.AF_UNIX)\ns.connect("/tmp/control")')}`,
  ),

  // Signals to others.
  stdin(
    "kills its parent",
    "import os, signal\ntry: os.kill(os.getppid(), signal.SIGKILL)\nexcept OSError: pass\nprint(5)",
  ),
  stdin(
    "kills its process group",
    "import os, signal\ntry: os.kill(0, signal.SIGTERM)\nexcept OSError: pass\nprint('alive')",
  ),
  stdin(
    "kills everything it may",
    "import os, signal\ntry: os.kill(-1, signal.SIGKILL)\nexcept OSError: pass\nprint('alive')",
  ),
  stdin(
    "a storm of signals to its parent",
    "import os\nfor s in list(range(1, 65)) * 20:\n    try: os.kill(os.getppid(), s)\n    except OSError: pass\nprint('none')",
  ),
  stdin("a process of the host", `import os\n${escapes(`os.kill(${outside.pid}, 0)`)}`),
  stdin(
    "stops what watches it",
    "import os, signal\nfor s in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):\n    for p in (-1, os.getppid()):\n        try:\n            os.kill(p, s)\n            print('ESCAPED')\n        except OSError: pass\nprint('none')",
  ),
  stdin(
    "limits its parent",
    "import os, resource\nfor r in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_AS):\n    try:\n        resource.prlimit(os.getppid(), r, (0, 0))\n        print('ESCAPED')\n    except (OSError, ValueError): pass\ntry: os.sched_setaffinity(os.getppid(), {0})\nexcept OSError: pass\ndef priority(pid):\n    try: return os.getpriority(os.PRIO_PROCESS, pid)\n    except OSError: pass\nbefore = priority(0), priority(os.getppid())\nos.setpriority(os.PRIO_PROCESS, os.getppid(), 19); os.nice(5)\nif (priority(0), priority(os.getppid())) != before: print('ESCAPED')\nprint('none')",
  ),

  // Bombs.
  stdin("fork bomb", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"),
  stdin(
    "thread bomb",
    "import threading, time\nfor _ in range(10000): threading.Thread(target=time.sleep, args=(9,)).start()",
  ),
  stdin("memory bomb, one block", "x = bytearray(20 * 2**30)\nprint(5)"),
  stdin("memory bomb, touched bit by bit", "x = []\nwhile True: x.append(bytearray(b'x' * 2**20))"),
  stdin(
    "memory bomb in many processes",
    "import os, time\nfor _ in range(6):\n    try:\n        if os.fork() == 0: break\n    except OSError: pass\nx = bytearray(b'x' * (300 * 2**20))\ntime.sleep(3)",
  ),
  stdin(
    "shared memory bomb in many processes",
    "import mmap, os, time\nfor _ in range(6):\n    try:\n        if os.fork() == 0: break\n    except OSError: pass\nm = mmap.mmap(-1, 400 * 2**20)\nfor i in range(0, len(m), 4096): m[i] = 1\ntime.sleep(3)\nprint(5)",
  ),
  stdin(
    "socket buffer bomb",
    "import os, socket, time\nfor _ in range(5):\n    try: os.fork()\n    except OSError: pass\nheld = []\nwhile True:\n    try: held.append(socket.socketpair())\n    except OSError: break\nfor a, b in held:\n    for s in (a, b):\n        s.setblocking(False)\n        try:\n            while True: s.send(b'x' * 65536)\n        except OSError: pass\ntime.sleep(3)",
  ),
  stdin("disk bomb, one file", "with open('big', 'wb') as f:\n    while True: f.write(b'x' * 2**20)"),
  stdin("disk bomb, many files", "n = 0\nwhile True:\n    open('f%d' % n, 'wb').write(b'x' * 2**20)\n    n += 1"),
  stdin("inode bomb", "import os\nn = 0\nwhile True:\n    os.mkdir('d%d' % n)\n    n += 1"),
  stdin("deep folders", "import os\nwhile True:\n    os.mkdir('d')\n    os.chdir('d')"),
  stdin("output bomb", "while True: print('y' * 10000)"),
  stdin("error output bomb", "import sys\nwhile True: sys.stderr.write('y' * 10000)"),
  call("report bomb", "import os\ndef f(a, b):\n    while True: os.write(3, b'V' * 65536)"),
  call("huge value", "def f(a, b): return 'x' * (200 * 2**20)"),
  call("deep value", "def f(a, b):\n    x = []\n    for _ in range(100000): x = [x]\n    return x"),
  stdin("descriptor bomb", "import os\nd = []\nwhile True: d.append(os.pipe())"),
  stdin("recursion", "def f(): f()\nf()"),
  stdin("huge integer", "print(10**5000000)"),
  stdin("catastrophic regex", "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')"),
  stdin("a source that is hard to parse", `x = ${"(".repeat(150)}1${")".repeat(150)}\nprint(${"-".repeat(20_000)}1)`),
  stdin(
    "ignores every signal and sleeps",
    "import signal, time\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nsignal.alarm(0)\ntime.sleep(30)\nprint(5)",
  ),
  stdin(
    "raises its own limits",
    "import resource\nfor r in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):\n    try:\n        resource.setrlimit(r, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n        if r != resource.RLIMIT_NPROC or resource.getrlimit(r)[0] == -1: print('ESCAPED', r)\n    except (OSError, ValueError): pass\nprint('none')",
  ),
  stdin("sleeps in atexit", "import atexit, time\natexit.register(time.sleep, 30)"),

  // Symbolic links and paths.
  stdin(
    "symbolic links to the host",
    `import os\nos.symlink('/etc/passwd', 'link')\n${escapes("open('link').read()")}os.symlink(${JSON.stringify(outside.secretFile)}, 'other')\n${escapes("open('other').read()")}`,
  ),
  stdin(
    "dot-dot",
    `${escapes("open('../../../../../../etc/passwd').read()")}${escapes("open('../../whetstone-escape', 'w').write('x')")}`,
  ),
  stdin(
    "its own root through /proc",
    `import os\n${escapes("open('/proc/1/root/etc/passwd').read()")}${escapes("os.listdir('/proc/1/cwd')")}${escapes("open('/proc/self/root/etc/passwd').read()")}`,
  ),
  stdin(
    "writes outside scratch",
    "import os, sys\nfor folder in ('/', '/usr', '/dev', '/etc', '/var/tmp', '/opt/whetstone', sys.prefix, os.path.dirname(os.__file__)):\n    try:\n        open(os.path.join(folder, 'zz'), 'w').write('x')\n        print('ESCAPED', folder)\n    except OSError: pass\nprint('none')",
  ),
  stdin(
    "patches the interpreter",
    "import os\np = os.__file__\nseen = lambda: os.stat(p)[:1] + os.stat(p)[6:]\nbefore = seen()\nfor act in (lambda: os.chmod(p, 0o777), lambda: os.remove(p), lambda: os.truncate(p, 0), lambda: os.utime(p), lambda: os.rename(p, p + 'x')):\n    try: act()\n    except OSError: pass\n    if not os.path.exists(p) or (seen()[0], seen()[1], seen()[3]) != (before[0], before[1], before[3]): print('ESCAPED')\nprint('none')",
  ),
  stdin(
    "mounts and namespaces",
    "import ctypes\nl = ctypes.CDLL(None)\nfor name, ok in (('unshare', l.unshare(0x10000000)), ('mount', l.mount(b'x', b'/tmp', b'tmpfs', 0, b'')), ('umount', l.umount2(b'/tmp', 2)), ('chroot', l.chroot(b'/tmp')), ('setns', l.setns(0, 0)), ('sethostname', l.sethostname(b'x', 1)), ('setuid', l.setuid(0))):\n    if ok == 0: print('ESCAPED', name)\nprint('none')",
  ),

  // Waiting for the next test, leaving something for it.
  stdin(
    "waits for the next input",
    "import os, sys, time\nt = sys.stdin.read()\nend = time.time() + .4\nwhile time.time() < end:\n    t += os.read(0, 1000).decode()\n    time.sleep(.01)\nprint('ESCAPED' if t.count('\\n') > 1 else t)",
  ),
  stdin(
    "leaves files",
    "import os, glob\nleft = glob.glob('note*') + glob.glob('/tmp/note*') + glob.glob('/dev/shm/note*')\nprint('ESCAPED' if left else 'none')\nfor p in ('note', '/tmp/note', '/dev/shm/note'):\n    try: open(p, 'w').write('5')\n    except OSError: pass",
  ),
  stdin(
    "leaves a process",
    "import os, time\ntry: pids = [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]\nexcept OSError: pids = []\nprint('ESCAPED' if pids else 'none')\ntry:\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n            time.sleep(60)\nexcept OSError: pass",
  ),
  stdin(
    "daemon that answers later",
    "import os, time\ntry:\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(.3)\n        print(5, flush=True)\n        os._exit(0)\nexcept OSError: pass",
  ),
  stdin(
    "leaves state in modules",
    "import builtins, sys, os\nn = getattr(builtins, 'counter', 0) + getattr(sys, 'counter', 0)\nbuiltins.counter = sys.counter = n + 1\nprint('ESCAPED' if n else 'none')",
  ),
  stdin(
    "leaves attributes on folders",
    "import os\nm = os.stat('.').st_mtime_ns\nprint('ESCAPED' if m == 123456789 else 'none')\ntry:\n    os.utime('.', ns=(123456789, 123456789))\n    os.setxattr('.', 'user.note', b'5')\nexcept OSError: pass",
  ),
  stdin(
    "poisons the bytecode cache",
    "import os, sys\ntry:\n    os.makedirs('__pycache__', exist_ok=True)\n    open('json.py', 'w').write('raise SystemExit(0)')\nexcept OSError: pass\nimport importlib\nprint('ESCAPED' if os.path.exists('/opt/whetstone/__pycache__') else 'none')",
  ),
  stdin(
    "a scan of its own memory",
    "import ctypes, os, re\nfirst = input()\nl = ctypes.CDLL(None)\nl.sbrk.restype = ctypes.c_void_p\nr, w = os.pipe()\nneedle = re.compile(b'1[0] -4')\npage = 4096\nnear = [l.sbrk(0), id(object()), ctypes.addressof(ctypes.create_string_buffer(9)), ctypes.cast(l.printf, ctypes.c_void_p).value]\nfound, pages = False, 0\nfor at in sorted({n // (1 << 25) for n in near}):\n    for k in range((at - 1) << 13, (at + 2) << 13):\n        if l.write(w, ctypes.c_void_p(k * page), page) == page:\n            pages += 1\n            found = needle.search(os.read(r, page)) is not None or found\nprint('ESCAPED' if found and first.startswith('2') else 'none' if pages > 500 else 'ESCAPED: saw only %d pages' % pages)",
  ),

  // Other descriptors, other ends, other ways to wait.
  stdin(
    "touches what all see",
    "import os\nfor n in ('null', 'urandom', 'random', 'full'):\n    try:\n        before = os.stat('/dev/' + n).st_mtime_ns\n        os.utime('/dev/' + n)\n        if os.stat('/dev/' + n).st_mtime_ns != before: print('ESCAPED')\n    except OSError: pass\nprint('none')",
  ),
  stdin(
    "descriptors of other kinds",
    "import ctypes, os\nl = ctypes.CDLL(None)\nl.syscall.restype = ctypes.c_long\n# pidfd_open, pidfd_getfd, io_uring_setup, userfaultfd, perf_event_open, inotify_init1, fanotify_init, memfd_create, memfd_secret, bpf, open_by_handle_at\nfor n in (434, 438, 425, 323, 298, 294, 300, 319, 447, 321, 304):\n    if l.syscall(ctypes.c_long(n), ctypes.c_long(os.getpid() if n == 434 else 0), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0)) >= 0: print('ESCAPED', n)\nprint('none')",
  ),
  stdin(
    "hides descriptors in messages",
    "import array, socket\na, b = socket.socketpair()\ntry:\n    a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0, 1, 2]))])\n    print('ESCAPED')\nexcept OSError: print('none')",
  ),
  stdin(
    "an orphan in a group of its own",
    "import os, time\ntry:\n    if os.fork() == 0:\n        os.setpgid(0, 0)\n        if os.fork() == 0:\n            os.setpgid(0, 0)\n            for _ in range(200):\n                try: open('late', 'w').write('5')\n                except OSError: pass\n                time.sleep(.01)\n        os._exit(0)\n    time.sleep(.05)\nexcept OSError: pass\nprint('none')",
  ),
  stdin(
    "fills its pipes and stops reading",
    "import os\nr, w = os.pipe()\nos.set_blocking(w, False)\ntry:\n    while True: os.write(w, b'x' * 65536)\nexcept BlockingIOError: pass\nos.write(3, b'V' + b'[' * 70000)\nprint('x' * 70000, end='')",
  ),
  stdin(
    "a flood of errors, no newline, no text",
    "import os\nfor _ in range(300): os.write(2, bytes(range(256)) * 256)\nos.write(1, b'\\xff\\x00' * 5000)",
  ),
  stdin(
    "stops its own supervisor",
    "import os, signal\nfor p in (os.getppid(), 1, 0, -1):\n    for s in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTOU):\n        try: os.kill(p, s)\n        except OSError: pass\nprint('none')",
  ),
  stdin(
    "a stack without end, in C",
    "import ctypes, sys\nsys.setrecursionlimit(10 ** 9)\nclass A:\n    def __repr__(self): return repr([self])\nrepr(A())",
  ),
  stdin(
    "becomes another program",
    "import os\ntry: os.execv('/bin/echo', ['echo', '5'])\nexcept OSError: print('none')",
  ),
  stdin(
    "waits on memory of a library",
    "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nl.syscall.restype = ctypes.c_long\nat = ctypes.cast(l.printf, ctypes.c_void_p).value & ~3\nv = ctypes.c_uint.from_address(at).value\nfor op in (0, 9, 6, 11, 13):\n    r = l.syscall(ctypes.c_long(202), ctypes.c_void_p(at), op, ctypes.c_uint(v), None, None, -1)\nprint('none')",
  ),
];
