// `./whet test`: everything that must hold before a change lands; `./whet test fast`: what of it is over within a minute.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Command } from "../src/cli/command.ts";
import { WhetstoneError } from "../src/core/errors.ts";
import { seconds } from "../test/seconds.ts";
import { makeVenvs } from "../test/support/venv.ts";

const root = fileURLToPath(new URL("../", import.meta.url));

/**
 * What holds without running anything, beside the tests. The compiler is named by its folder: an older one, whose API the tests use,
 * has the same name among the programs. One thread of it does in all a third of what four do.
 */
const checks: [name: string, program: string, ...args: string[]][] = [
  ["types", "typescript/bin/tsc", "--noEmit", "--singleThreaded"],
  ["types of the page", "typescript/bin/tsc", "-p", "src/dashboard/page"],
  ["format and lint", ".bin/biome", "check", "."],
  ["promises", ".bin/oxlint", "--type-aware", "--deny-warnings"],
];

/** Tests beside the code that are not for the inner loop: those that were measured as long. They take nine tenths of the time of all. */
const slow = Object.keys(seconds).filter((name) => name.startsWith("src/"));

export const command: Command = {
  help: () =>
    [
      "Usage: ./whet test [fast | PATH …]",
      "",
      "Tests, with type check and lint beside them. fast: the checks and the quick unit tests, in under a minute on two cores. With paths, only",
      "the test files whose name contains one of them, without the checks.",
    ].join("\n"),
  async run(args) {
    if (/[#?]/.test(root))
      throw new WhetstoneError(
        "cli/test-path",
        `The test runner cannot work in ${root}: it takes # and ? in a path for parts of an address. Everything else works there; clone to another folder to run the tests.`,
      );
    const fast = args.length === 1 && args[0] === "fast";
    const isWhole = args.length === 0;
    const checked = fast || isWhole ? check() : [];
    // What cannot be had is said by the tests that want it.
    const made = isWhole ? makeVenvs() : undefined;
    console.log("whetstone: tests");
    // They wait for nothing, and every worker reads the modules anew.
    const chosen = fast ? ["src/", "--maxWorkers=3", ...slow.map((name) => `--exclude=${name}`)] : args;
    const tested = await finish(".bin/vitest", ["run", ...chosen], "inherit");
    const failed = [...(await checked), ...(tested.ok ? [] : ["tests"])];
    await made;
    for (const name of failed) console.error(`whetstone: ${name} failed`);
    return failed.length === 0 ? 0 : 1;
  },
};

/** Runs the checks one after another and gives the names of those that failed; what a failing one says is shown at once. */
async function check(): Promise<string[]> {
  const failed: string[] = [];
  for (const [name, program, ...args] of checks) {
    const { ok, output } = await finish(program, args, "pipe");
    if (ok) console.log(`whetstone: ${name}: ok`);
    else {
      failed.push(name);
      console.error(`whetstone: ${name} failed\n${output}`);
    }
  }
  return failed;
}

async function finish(program: string, args: string[], stdio: "inherit" | "pipe") {
  // The checkers are written in Go, whose collector takes a third of their time unless it is given room.
  const { WHET_LAUNCHER: _, ...inherited } = process.env; // tests read messages as they are without it
  const env = { GOGC: "400", ...inherited };
  const child = spawn(`${root}node_modules/${program}`, args, { cwd: root, env, stdio: ["inherit", stdio, stdio] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  try {
    const [code] = await once(child, "close");
    return { ok: code === 0, output };
  } catch (error) {
    return { ok: false, output: (error as Error).message };
  }
}
