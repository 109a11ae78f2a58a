// How a zygote is started at each level: the bubblewrap command line, the environment programs see, the user they run as.
import { existsSync, lstatSync, readFileSync, readlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ZygoteGroups } from "./groups.ts";
import { type Interpreter, outermost } from "./interpreter.ts";

export const pythonFolder = fileURLToPath(new URL("./python", import.meta.url));

/** Where the outer jail shows our Python files and the folder with the control socket. */
const codeInside = "/opt/whetstone";
const controlInside = "/tmp";
/** Where it shows an interpreter whose own folder is one that the jail covers, such as a virtual environment under /tmp. */
const movedInside = "/opt/interpreter";
const coveredFolders = ["/tmp", "/dev", "/proc"];

/** Deep recursion: 600,000 levels of Python 3.8 to 3.10 need about this much; address space is used only as it grows. */
const stackBytes = 1024 ** 3;

/** Without zero: mapped, it is shared memory that nobody counts. */
const deviceFiles = ["null", "full", "random", "urandom"];

/** What a zygote needs to be spawned: argv, and the path by which its slots reach the control socket. */
export interface ZygoteCommand {
  argv: (groups: ZygoteGroups | null) => string[];
  socketInside: string;
}

export interface CommandParts {
  interpreter: Interpreter;
  controlFolder: string;
  socketName: string;
}

/** The whole environment of a program. PYTHONHASHSEED makes set order repeatable; one thread keeps BLAS within its core. */
export const programEnvironment: Record<string, string> = {
  PATH: "/usr/local/bin:/usr/bin:/bin",
  HOME: "/tmp",
  LANG: "C.UTF-8",
  PYTHONHASHSEED: "0",
  PYTHONDONTWRITEBYTECODE: "1",
  PYTHONINTMAXSTRDIGITS: "50000",
  PYTHONUTF8: "1",
  OMP_NUM_THREADS: "1",
  OPENBLAS_NUM_THREADS: "1",
  MKL_NUM_THREADS: "1",
};

/** Libraries are linked at once: otherwise every process that is forked later would look the same names up again. The zygote takes it away. */
const zygoteEnvironment = { ...programEnvironment, LD_BIND_NOW: "1" };

/** No folder of the user, no bytecode written; packages are found by zygote.py itself. */
const zygoteFlags = ["-S", "-s", "-B"];

/** An unprivileged user when we are root: the jail must not hold real root, and process limits do not bind root. */
export function unprivilegedUser(): number | null {
  return process.geteuid?.() === 0 ? 65_534 : null;
}

/** What a zygote needs to reach is opened up for other users where we are root and programs are not. */
function enter(parts: CommandParts, command: string[], user: number | null): ZygoteCommand["argv"] {
  const { interpreter, controlFolder } = parts;
  const paths = unprivilegedUser() === null ? [] : [...interpreter.folders, pythonFolder, controlFolder];
  const config = { command, environment: zygoteEnvironment, user, paths, stackBytes };
  const start = [interpreter.executable, "-I", "-S", "-B", `${pythonFolder}/enter.py`];
  return (groups) => [...start, JSON.stringify({ ...config, groups })];
}

/** Level "jail": bubblewrap around the zygote. Only system folders and the interpreter are visible, read-only; no network. */
export function jailCommand(bwrap: string, parts: CommandParts): ZygoteCommand {
  const { interpreter } = parts;
  const bound = interpreter.folders.filter((folder) => !isBelow(folder, "/usr"));
  const shown = new Map(bound.map((folder, index) => [folder, isCovered(folder) ? `${movedInside}/${index}` : folder]));
  const command = [
    bwrap,
    ...["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"],
    ...["--ro-bind", "/usr", "/usr"],
    ...["bin", "sbin", "lib", "lib32", "lib64"].flatMap(systemFolder),
    ...["/etc/ld.so.cache", "/etc/alternatives"].flatMap((path) => (existsSync(path) ? ["--ro-bind", path, path] : [])),
    ...["--proc", "/proc", "--tmpfs", "/dev"],
    ...deviceFiles.flatMap((name) => ["--dev-bind", `/dev/${name}`, `/dev/${name}`]),
    ...["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/proc/self/fd/0", "/dev/stdin"],
    ...["--symlink", "/proc/self/fd/1", "/dev/stdout", "--symlink", "/proc/self/fd/2", "/dev/stderr"],
    ...["--symlink", "/tmp", "/dev/shm", "--remount-ro", "/dev"],
    ...["--ro-bind", parts.controlFolder, controlInside],
    ...[...shown].flatMap(([folder, inside]) => ["--ro-bind", folder, inside]),
    ...["--ro-bind", pythonFolder, codeInside],
    ...["--remount-ro", "/", "--chdir", "/", "--"],
    ...[executableInside(interpreter.executable, shown), ...zygoteFlags, `${codeInside}/zygote.py`],
  ];
  return {
    argv: enter(parts, command, unprivilegedUser()),
    socketInside: `${controlInside}/${parts.socketName}`,
  };
}

/** Level "landlock": the zygote runs bare; every slot confines its own programs. */
export function confinedCommand(parts: CommandParts): ZygoteCommand {
  const { interpreter } = parts;
  const command = [interpreter.executable, ...zygoteFlags, `${pythonFolder}/zygote.py`];
  return { argv: enter(parts, command, null), socketInside: `${parts.controlFolder}/${parts.socketName}` };
}

/** What programs may read at the "landlock" level. */
export function confinedReadable(interpreter: Interpreter): string[] {
  const system = [
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
  ];
  return outermost([...system, ...interpreter.folders]).concat(deviceFiles.map((name) => `/dev/${name}`));
}

/** User ids for slots at the "landlock" level when we are root: every slot its own, so that slots cannot touch each other. */
export function slotUsers(): { firstUser: number | null; users: number } {
  if (process.geteuid?.() !== 0) return { firstUser: null, users: 0 };
  const [first = 0, , length = 0] = readFileSync("/proc/self/uid_map", "utf8").trim().split(/\s+/).map(Number);
  const everyId = first === 0 && length > 2_000_000_000;
  return everyId ? { firstUser: 1_900_000_000, users: 10_000_000 } : { firstUser: 40_000, users: 20_000 };
}

function systemFolder(name: string): string[] {
  const path = `/${name}`;
  if (!existsSync(path)) return [];
  return lstatSync(path).isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
}

const isCovered = (folder: string) => coveredFolders.some((covered) => isBelow(folder, covered));

/** An interpreter finds its library beside itself, so it works wherever its folder is shown. */
function executableInside(executable: string, shown: ReadonlyMap<string, string>): string {
  for (const [folder, inside] of shown)
    if (isBelow(executable, folder)) return inside + executable.slice(folder.length);
  return executable;
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
