// `./whet test`: everything that must hold before a change lands.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { WhetstoneError } from "../core/errors.ts";
import type { Command } from "./command.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

export const command: Command = {
  help: () =>
    [
      "Usage: ./whet test [PATH …]",
      "",
      "Type check, lint and tests. With paths, only the test files whose name contains one of them, without the checks.",
    ].join("\n"),
  async run(args) {
    if (/[#?]/.test(root))
      throw new WhetstoneError(
        "cli/test-path",
        `The test runner cannot work in ${root}: it takes # and ? in a path for parts of an address. Everything else works there; clone to another folder to run the tests.`,
      );
    const steps: [name: string, command: string[]][] =
      args.length > 0
        ? []
        : [
            ["types", ["tsc", "--noEmit"]],
            ["types of the page", ["tsc", "-p", "src/dashboard/page"]],
            ["format and lint", ["biome", "check", "."]],
            ["promises", ["oxlint", "--type-aware", "--deny-warnings"]],
          ];
    steps.push(["tests", ["vitest", "run", ...args]]);
    for (const [name, [program, ...rest]] of steps) {
      console.log(`whetstone: ${name}`);
      const result = spawnSync(`${root}node_modules/.bin/${program!}`, rest, { cwd: root, stdio: "inherit" });
      if (result.status !== 0) {
        console.error(`whetstone: ${name} failed`);
        return 1;
      }
    }
    return 0;
  },
};
