// The two levels of isolation in words: what each is, what it lacks, and what to do where neither works.
import { tmpdir } from "node:os";
import type { Interpreter } from "./interpreter.ts";
import type { SandboxDescription } from "./sandbox.ts";

/** Isolation levels, strongest first. */
export type JailLevel = "jail" | "landlock";

/** Why no level works here, and what would help. */
export function whyUnavailable(failures: readonly string[]): string {
  const noRoom = failures.every((failure) => /\b(ENOSPC|EDQUOT|EROFS|EACCES)\b/.test(failure));
  return [
    "No isolation level of the embedded jail works here, so no program was run.",
    ...failures.map((failure) => `  ${failure}`),
    noRoom
      ? `To fix it: free some space in ${tmpdir()}, or set TMPDIR to a folder where you may write.`
      : "To fix it: install bubblewrap (apt-get install bubblewrap) and allow unprivileged user namespaces " +
        "(Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0; Docker: --security-opt seccomp=unconfined " +
        "--security-opt systempaths=unconfined), or run a kernel with Landlock (5.13 or later), or set SANDBOX_URL to a Sandbox Fusion server.",
  ].join("\n");
}

/** A level as it is here: what it gives, and what it lacks. */
export function describeLevel(
  level: JailLevel,
  interpreter: Interpreter,
  slots: number,
  { cgroups, files }: { cgroups: boolean; files: boolean },
): SandboxDescription {
  const memory = cgroups ? ", memory control groups" : "";
  const programs = `${slots} program${slots === 1 ? "" : "s"} at a time, Python ${interpreter.version}`;
  if (level === "jail") {
    const summary = `embedded jail: bubblewrap, namespaces per program, seccomp${memory}; ${programs}`;
    return { kind: "jail", summary, lacks: [], python: interpreter.executable, programsAtOnce: slots };
  }
  const lacks = [
    "programs cannot start processes (subprocess, fork, multiprocessing fail)",
    "scratch space is watched, not bounded by a file system",
    ...(files
      ? []
      : [
          "the existence and attributes of files outside can be seen, not their content",
          "names looked up in vain stay in the host's memory, where other programs find them",
        ]),
    "no /proc; changes of file modes and times report success and do nothing",
    "numbers of threads, processes and files are the host's: they tell of others",
  ];
  if (process.geteuid?.() !== 0) lacks.push("all programs run as the calling user");
  const summary = `embedded jail, second level: Landlock, seccomp without processes and sockets${memory}; ${programs}`;
  return { kind: "landlock", summary, lacks, python: interpreter.executable, programsAtOnce: slots };
}
