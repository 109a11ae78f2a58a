"""Which files programs may see, copied into a folder that becomes their root: the interpreter with its library, the shared libraries that it and
its modules need, and the tools that programs start. The folder lies on a tmpfs: it keeps no trace of names that were looked up in vain, its
pages are in memory from the start, and reading changes nothing. See docs/decisions/isolation.md.
"""

import os
import stat
import struct
import sys

# Of the standard library, what no program of a contest imports: tests, editors, what is linked against.
_LEFT_OUT = set("test tests idlelib turtledemo tkinter lib2to3 ensurepip pydoc_data site-packages dist-packages".split())
_ENDINGS_LEFT_OUT = (".opt-1.pyc", ".opt-2.pyc", ".a", ".exe")
_STARTS_LEFT_OUT = ("config-3.", "_tkinter.", "_testcapi.")

_TOOLS = """
sh bash env [ test true false echo printf cat head tail tac rev wc sort uniq cut tr tee paste join comm split fold nl od seq shuf expr factor
ls cp mv rm ln mkdir rmdir touch chmod stat readlink realpath basename dirname mktemp pwd find xargs grep egrep fgrep sed awk mawk gawk diff cmp
date sleep nice nohup kill id uname whoami which yes tsort base64 md5sum sha1sum sha256sum cksum sum numfmt bc dc gzip gunzip zcat time
""".split()
_TOOL_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
# Where there is bash it is `sh` too, with the echo of dash: `wait` of dash sleeps until a handler of SIGCHLD is called, and none can be set here
# (seccomp.py). `timeout` does the same and stays outside.
_SHELL = '#!%s\nexec -a "$0" %s -O xpg_echo "$@"\n'
# What programs load by name, or a library once it is needed.
_LIBRARIES = "libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libgcc_s.so.1 libstdc++.so.6 libgomp.so.1".split()
_DATA = ("/etc/ld.so.cache", "/usr/share/zoneinfo", "/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8")
_SYSTEM_PREFIXES = ("/usr", "/usr/local", "/")
_PIECE = 1 << 30
_MOST_WORKERS = 4


class Tree:
    """Copies into `root`, every path to the same place. Links stay links, and what they lead to comes along."""

    def __init__(self, root, executable):
        self.root = root
        self._files = []
        self._known = set()
        self._folders = {"/"}
        self._libraries = _Libraries(executable)
        self._binaries = []

    def add(self, path):
        """A file, with the folders and the links on the way to it; nothing where there is none of that name."""
        real = self._way(path)
        if real is None or real in self._known:
            return
        try:
            status = os.lstat(real)
            if stat.S_ISREG(status.st_mode):
                self._copy(real, status)
        except (FileNotFoundError, PermissionError):
            pass  # what the user may not read, programs could not either

    def write(self, path, text):
        """A program of our own in the place of one."""
        place = os.path.join(self._way(os.path.dirname(path)), os.path.basename(path))
        if place not in self._known:
            self._known.add(place)
            self._make(os.path.dirname(place))
            with open(self.root + place, "w") as file:
                file.write(text)
            os.chmod(self.root + place, 0o755)

    def add_folder(self, path, leave_out=()):
        """A folder with all that is below it, but what is named in `leave_out` directly in it."""
        real = self._way(path)
        if real is None or real in self._known:
            return
        self._known.add(real)
        waiting = [(real, leave_out)]
        while waiting:
            folder, left_out = waiting.pop()
            self._make(folder)
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue
            for entry in entries:
                if entry.name in left_out or entry.name.endswith(_ENDINGS_LEFT_OUT) or entry.name.startswith(_STARTS_LEFT_OUT):
                    continue
                try:
                    if entry.is_symlink():
                        (self.add_folder if entry.is_dir() else self.add)(entry.path)
                    elif entry.is_dir():
                        waiting.append((entry.path, ()))
                    elif entry.is_file():
                        self._copy(entry.path, entry.stat())
                except PermissionError:
                    continue

    def add_whole(self, path, leave_out=()):
        """A file, or a folder with all that is below it."""
        if os.path.isdir(path):
            self.add_folder(path, leave_out)
        else:
            self.add(path)

    def add_libraries(self):
        """What the binaries that were copied are linked against, and what those need in turn."""
        while self._binaries:
            path = self._binaries.pop()
            for needed in self._libraries.needed_by(path):
                self.add(needed)

    def add_library(self, name):
        path = self._libraries.find(name, ())
        if path is not None:
            self.add(path)

    def _way(self, path):
        """Makes the folders and links that lead to a path; returns where it leads."""
        done, parts, hops = "/", path.strip("/").split("/"), 0
        while parts:
            part = parts.pop(0)
            if part in ("", "."):
                continue
            if part == "..":
                done = os.path.dirname(done)
                continue
            here = os.path.join(done, part)
            try:
                target = os.readlink(here) if here not in self._folders else None
            except FileNotFoundError:
                return None
            except OSError:
                target = None  # no link
            if target is None:
                if parts and here not in self._folders:
                    if not os.path.isdir(here):
                        return None
                    self._make(here)
                done = here
                continue
            hops += 1
            if hops > 40:
                return None
            self._make(done)
            if here not in self._known:
                self._known.add(here)
                os.symlink(target, self.root + here)
            if target.startswith("/"):
                done = "/"
            parts = target.strip("/").split("/") + parts
        return done

    def _make(self, folder):
        if folder in self._folders:
            return
        self._make(os.path.dirname(folder))
        os.makedirs(self.root + folder, 0o755, exist_ok=True)
        self._folders.add(folder)

    def _copy(self, path, status):
        if path in self._known:
            return
        self._known.add(path)
        self._make(os.path.dirname(path))
        runs = bool(status.st_mode & 0o111)
        if not os.access(path, os.R_OK):
            return  # what the user may not read, programs could not either
        self._files.append((status.st_size, path, 0o755 if runs else 0o644, status.st_mtime_ns))
        if runs or ".so" in path:
            self._binaries.append(path)

    def copy(self):
        """All files that were added, by as many processes as there are processors."""
        workers = max(1, min(_MOST_WORKERS, len(os.sched_getaffinity(0))))
        self._files.sort(reverse=True)
        children = []
        for number in range(1, workers):
            child = os.fork()
            if child == 0:
                try:
                    self._copy_some(self._files[number::workers])
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        self._copy_some(self._files[::workers])
        if any([os.waitpid(child, 0)[1] for child in children]):
            raise OSError("files for programs could not be copied; is there memory for %d bytes?" % sum(size for size, *_rest in self._files))

    def _copy_some(self, some):
        for _size, path, mode, changed_ns in some:
            source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            target = os.open(self.root + path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            while os.sendfile(target, source, None, _PIECE):
                pass
            os.utime(target, ns=(changed_ns, changed_ns))  # the interpreter compares it with what a compiled module says
            os.close(target)
            os.close(source)


class _Libraries:
    """Finds shared libraries as the dynamic linker does: by the paths that a binary names, the linker's cache, the usual folders."""

    def __init__(self, executable):
        self._cache = _linker_cache()
        self._found = {}
        self._kind = _Binary(executable).kind
        machine = os.uname().machine + "-linux-gnu"
        self._folders = ["/lib/" + machine, "/usr/lib/" + machine, "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"]

    def find(self, name, folders):
        key = (name, *folders)
        if key not in self._found:
            self._found[key] = self._look_for(name, folders)
        return self._found[key]

    def _look_for(self, name, folders):
        candidates = [os.path.join(folder, name) for folder in folders] + self._cache.get(name, [])
        for path in candidates + [os.path.join(folder, name) for folder in self._folders]:
            try:
                if _Binary(path).kind == self._kind:
                    return path
            except (OSError, ValueError, struct.error):
                continue
        return None

    def needed_by(self, path):
        try:
            binary = _Binary(path)
            if binary.kind != self._kind:
                return
            needed, folders = binary.dynamic()
        except (OSError, ValueError, struct.error):
            return  # a script, or something of another kind
        if binary.interpreter is not None:
            yield binary.interpreter
        own = os.path.dirname(path)
        folders = [folder.replace("${ORIGIN}", own).replace("$ORIGIN", own) for folder in folders]
        for name in needed:
            found = name if "/" in name else self.find(name, folders)
            if found is not None:
                yield found


class _Binary:
    """As much of an ELF file as says what it needs; 64 bit, little-endian."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            head = file.read(64)
            if head[:6] != b"\x7fELF\x02\x01":
                raise ValueError("not a binary of this kind")
            self.kind = struct.unpack_from("<H", head, 18)[0]
            start, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
            file.seek(start)
            table = file.read(size * count)
            self._segments = [struct.unpack_from("<IIQQQQ", table, size * index) for index in range(count)]
            named = [one for one in self._segments if one[0] == 3]
            self.interpreter = None
            if named:
                file.seek(named[0][2])
                self.interpreter = os.fsdecode(file.read(named[0][5]).rstrip(b"\0"))

    def dynamic(self):
        """The names of the libraries it needs, and the folders it wants them looked for in."""
        with open(self.path, "rb") as file:
            values = {}
            for kind, _flags, offset, _address, _physical, size in self._segments:
                if kind == 2:
                    file.seek(offset)
                    table = file.read(size)
                    for at in range(0, len(table) - 15, 16):
                        tag, value = struct.unpack_from("<qQ", table, at)
                        values.setdefault(tag, []).append(value)
            if 5 not in values or 10 not in values:
                return [], []
            file.seek(self._offset(values[5][0]))
            names = file.read(values[10][0])
            text = lambda at: os.fsdecode(names[at : names.index(b"\0", at)])  # noqa: E731
            paths = [text(at) for tag in (15, 29) for at in values.get(tag, [])]
            return [text(at) for at in values.get(1, [])], [folder for path in paths for folder in path.split(":") if folder]

    def _offset(self, address):
        for kind, _flags, offset, start, _physical, size in self._segments:
            if kind == 1 and start <= address < start + size:
                return offset + address - start
        raise ValueError("an address outside the file")


def _linker_cache():
    """Names of libraries and where they lie, as ldconfig wrote them; empty where there is no such file (musl)."""
    found = {}
    try:
        with open("/etc/ld.so.cache", "rb") as file:
            data = file.read()
        start = data.find(b"glibc-ld.so.cache1.1")
        count = struct.unpack_from("<I", data, start + 20)[0] if start >= 0 else 0
        text = lambda at: os.fsdecode(data[start + at : data.index(b"\0", start + at)])  # noqa: E731
        for index in range(count):
            _flags, name, path = struct.unpack_from("<iII", data, start + 48 + 24 * index)
            found.setdefault(text(name), []).append(text(path))
    except (OSError, ValueError, struct.error):
        pass
    return found


def package_folders(library):
    """Where packages lie, as the interpreter finds them; the code that packages want to run at every start does not run."""
    import site

    site.exec = lambda *_: None
    site.execsitecustomize = lambda: None
    site.main()
    below = tuple(folder + "/" for folder in library)
    own = [path for path in sys.path if path not in library and os.path.isdir(path) and path != os.path.dirname(os.path.abspath(__file__))]
    return [path for path in own if not path.startswith(below) or os.path.basename(path) in ("site-packages", "dist-packages")]


def packages(folders):
    """Names that a program can import from there."""
    names = set()
    for folder in folders:
        for entry in os.listdir(folder):
            name, _, ending = entry.partition(".")
            if name.isidentifier() and name != "__pycache__" and (ending in ("", "py") or ending.endswith("so")):
                names.add(name)
    return sorted(names)


def _size(path):
    if not os.path.isdir(path) or os.path.islink(path):
        return os.lstat(path).st_size
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, files in os.walk(path) for name in files)


def _too_large(folders, most):
    """The largest entries of the folders, as many as must be left out so that the rest stays below `most` bytes."""
    sizes = sorted((_size(os.path.join(folder, name)), name) for folder in folders for name in os.listdir(folder))
    total, kept = 0, 0
    for size, _name in sizes:
        total += size
        if total > most:
            break
        kept += 1
    return [name for _size, name in sizes[kept:]]


def fill(root, library, folders, executable, code, max_bytes, others):
    """Copies all that programs may see to `root`, and the files of the sandbox itself (`code`). `library`: folders of the standard library;
    `folders`: of packages that come along, without the largest where all together have more than `max_bytes`; `others`: files and folders of
    other languages."""
    tree = Tree(root, os.path.realpath(executable))
    tree.add(executable)
    tree.add_folder(code, ("__pycache__",))
    tree.add(os.path.join(sys.prefix, "pyvenv.cfg"))
    for path in library:
        tree.add_whole(path, _LEFT_OUT)
    for name in ("python", "python3", "python%d.%d" % sys.version_info[:2]):
        tree.add(os.path.join(os.path.dirname(executable), name))
    left_out = _too_large(folders, max_bytes) if folders else []
    for path in folders:
        tree.add_folder(path, left_out)
        shared = os.path.join(sys.base_prefix, "lib")
        if sys.base_prefix not in _SYSTEM_PREFIXES and os.path.isdir(os.path.join(sys.base_prefix, "conda-meta")):
            for name in os.listdir(shared):  # packages of conda load libraries by name
                if ".so" in name:
                    tree.add(os.path.join(shared, name))
    tools = [os.path.join(folder, name) for folder in _TOOL_FOLDERS for name in _TOOLS]
    tools = [path for path in tools if os.access(path, os.X_OK)]
    bash = next((path for path in tools if path.endswith("/bash")), None)
    for path in tools:
        if path.endswith("/sh") and bash is not None:
            tree.write(path, _SHELL % (bash, bash))
        else:
            tree.add(path)
    for path in others:
        tree.add_whole(path)
    for name in _LIBRARIES:
        tree.add_library(name)
    for path in _DATA:
        tree.add_whole(path, ("posix", "right"))
    tree.add_libraries()
    tree.copy()
