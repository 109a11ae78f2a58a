// How zygotes are started at each level: the bubblewrap command line, the environment programs see, the user they run as.
import { existsSync, lstatSync, readFileSync, readlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Held, jailFolders } from "../core/languages/language.ts";
import type { ZygoteCgroups } from "./cgroups.ts";
import { type Interpreter, outermost } from "./interpreter.ts";
import { SandboxError } from "./sandbox.ts";

export const pythonFolder = fileURLToPath(new URL("./python", import.meta.url));

/** Where the outer jail shows our Python files and the folder with the control socket. */
const codeInside = "/opt/whetstone";
const controlInside = "/tmp";
/** Where the copies are made that become the root of everything inside. */
const filesInside = "/files";
/** Of packages for programs; where they are larger, the largest are left out. */
const maxPackageBytes = 512 * 1024 ** 2;
/** Where it shows an interpreter that lies in a folder that the jail has of its own, such as a virtual environment under /tmp. */
const movedInside = "/opt/interpreter";

/** Deep recursion: 600,000 levels of Python 3.8 to 3.10 need about this much; address space is used only as it grows. */
const stackBytes = 1024 ** 3;

/** Without /dev/zero: mapped, it is shared memory that no limit counts. */
const deviceFiles = ["null", "full", "random", "urandom"];

/** What a zygote needs to be spawned: argv, and the path by which its slots reach the control socket. */
export interface ZygoteCommand {
  argv: (cgroups: ZygoteCgroups | null) => string[];
  socketInside: string;
}

/** The same where files are held for programs (files.ts): `argv` asks the holder, which is started first. */
export interface HeldCommand extends ZygoteCommand {
  holder: string[];
}

export interface CommandParts {
  interpreter: Interpreter;
  controlFolder: string;
  socketName: string;
}

/** One holder of files. */
export interface HolderParts {
  /** Where it listens: a socket in the control folder that does not exist yet. */
  door: string;
  /** An empty folder that only it uses; its tmpfs lies there where there is no bubblewrap. */
  target: string;
  /** Packages that are installed come along. */
  packages: boolean;
  /** Files and folders that come along: what other languages need. */
  tools: readonly Held[];
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

const startOf = ({ interpreter }: CommandParts) => [
  ...[interpreter.executable, "-I", "-S", "-B"],
  `${pythonFolder}/enter.py`,
];

export const pathOf = (held: Held): string => (typeof held === "string" ? held : held[0]);
export const placeOf = (held: Held): string => (typeof held === "string" ? held : held[1]);

/** What is needed is opened up for other users where we are root and programs are not. */
function enter(parts: CommandParts, command: string[], user: number | null, tools: readonly Held[] = []) {
  const { interpreter, controlFolder } = parts;
  const paths =
    unprivilegedUser() === null ? [] : [...interpreter.folders, pythonFolder, controlFolder, ...tools.map(pathOf)];
  return { command, environment: zygoteEnvironment, user, paths, stackBytes };
}

/** The arguments of hold.py, whatever it runs in. */
const holding = (python: readonly string[], code: string, { packages }: HolderParts, place: object) => ({
  ...place,
  code,
  packages,
  maxBytes: maxPackageBytes,
  command: [...python, `${code}/zygote.py`],
  environment: zygoteEnvironment,
});

/** A holder that `command` starts as `user`, and the zygotes that it starts among its files. */
function heldBy(
  parts: CommandParts,
  { door, tools }: HolderParts,
  { command, user, controlFolder }: { command: string[]; user: number | null; controlFolder: string },
): HeldCommand {
  return {
    holder: [...startOf(parts), JSON.stringify({ ...enter(parts, command, user, tools), door })],
    argv: (cgroups) => [...startOf(parts), JSON.stringify({ knock: door, user: null, cgroups })],
    socketInside: `${controlFolder}/${parts.socketName}`,
  };
}

/** Level "jail": bubblewrap around the holder and all zygotes. Only copies of system files and of the interpreter are visible, read-only; no network. */
export function jailCommand(bwrap: string, parts: CommandParts, holder: HolderParts): HeldCommand {
  const { interpreter } = parts;
  checkPlaces(holder.tools);
  const own = interpreter.folders.filter((folder) => !isBelow(folder, "/usr"));
  const shown = new Map(own.map((folder, index) => [folder, isCovered(folder) ? `${movedInside}/${index}` : folder]));
  const python = [executableInside(interpreter.executable, shown), ...zygoteFlags];
  const keep = { "/proc": "/proc", "/dev": "/dev", [controlInside]: controlInside };
  const config = holding(python, codeInside, holder, {
    ...{ namespaces: true, target: filesInside, keep },
    tools: holder.tools.map(placeOf),
  });
  const command = [
    bwrap,
    ...["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"],
    ...["--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"], // of its own namespaces, until it has moved in
    ...systemFiles("/etc/ld.so.cache", "/etc/alternatives"),
    ...["--proc", "/proc", "--tmpfs", "/dev"],
    ...deviceFiles.flatMap((name) => ["--dev-bind", `/dev/${name}`, `/dev/${name}`]),
    ...["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/proc/self/fd/0", "/dev/stdin"],
    ...["--symlink", "/proc/self/fd/1", "/dev/stdout", "--symlink", "/proc/self/fd/2", "/dev/stderr"],
    ...["--symlink", "/tmp", "/dev/shm", "--remount-ro", "/dev"],
    ...bind(parts.controlFolder, controlInside),
    ...[...shown].flatMap(([folder, inside]) => bind(folder, inside)),
    ...holder.tools.flatMap((held) => (isBelow(placeOf(held), "/usr") ? [] : bind(pathOf(held), placeOf(held)))),
    ...bind(pythonFolder, codeInside),
    ...["--tmpfs", filesInside, "--remount-ro", "/", "--chdir", "/", "--"],
    ...[...python, `${codeInside}/hold.py`, JSON.stringify(config)],
  ];
  return heldBy(parts, holder, { command, user: unprivilegedUser(), controlFolder: controlInside });
}

/** Level "landlock": every slot confines its own programs. As root, among files that are held for them; the paths are the host's. */
export function heldCommand(parts: CommandParts, holder: HolderParts): HeldCommand {
  const python = [parts.interpreter.executable, ...zygoteFlags];
  const { controlFolder } = parts;
  const keep = { [controlFolder]: controlFolder };
  const config = holding(python, pythonFolder, holder, {
    ...{ namespaces: false, target: holder.target, keep },
    tools: holder.tools.map(pathOf),
  });
  const command = [...python, `${pythonFolder}/hold.py`, JSON.stringify(config)];
  return heldBy(parts, holder, { command, user: null, controlFolder });
}

/** Level "landlock" where no files can be held: the zygote runs bare, among the host's. */
export function confinedCommand(parts: CommandParts): ZygoteCommand {
  const command = [parts.interpreter.executable, ...zygoteFlags, `${pythonFolder}/zygote.py`];
  const config = enter(parts, command, null);
  return {
    argv: (cgroups) => [...startOf(parts), JSON.stringify({ ...config, cgroups })],
    socketInside: `${parts.controlFolder}/${parts.socketName}`,
  };
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

/** Where not every number is a user's; elsewhere a multiple. */
export const minUsers = 20_000;

/** User ids for slots at the "landlock" level when we are root: every slot its own, so that slots cannot touch each other. */
export function slotUsers(): { firstUser: number | null; users: number } {
  if (process.geteuid?.() !== 0) return { firstUser: null, users: 0 };
  const [first = 0, , length = 0] = readFileSync("/proc/self/uid_map", "utf8").trim().split(/\s+/).map(Number);
  const everyId = first === 0 && length > 2_000_000_000;
  return everyId ? { firstUser: 1_900_000_000, users: 500 * minUsers } : { firstUser: 40_000, users: minUsers };
}

const bind = (path: string, inside = path) => ["--ro-bind", path, inside];

/** What shows /usr, the folders beside it, and further paths where they are there. */
export const systemFiles = (...more: readonly string[]): string[] => [
  ...bind("/usr"),
  ...["/bin", "/sbin", "/lib", "/lib32", "/lib64"]
    .filter((path) => existsSync(path))
    .flatMap((path) => (lstatSync(path).isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : bind(path))),
  ...more.filter((path) => existsSync(path)).flatMap((path) => bind(path)),
];

const isCovered = (folder: string) => jailFolders.some((covered) => isBelow(folder, covered));

/** Tools that know where they lie cannot be shown elsewhere, as an interpreter is. */
function checkPlaces(tools: readonly Held[]): void {
  const covered = tools.find((held) => isCovered(placeOf(held)));
  if (covered === undefined) return;
  const path = pathOf(covered);
  throw new SandboxError(
    "sandbox/covered-tools",
    `Programs cannot see ${path}, which they need: the jail has a /${path.split("/")[1]} of its own. Install it elsewhere, such as below /opt, and put that on PATH.`,
  );
}

/** An interpreter finds its library beside itself, so it works wherever its folder is shown. */
function executableInside(executable: string, shown: ReadonlyMap<string, string>): string {
  for (const [folder, inside] of shown)
    if (isBelow(executable, folder)) return inside + executable.slice(folder.length);
  return executable;
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
