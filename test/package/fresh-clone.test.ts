// Fresh clones that really install: `npm run release:check` runs these, `./whet test` does not, for they fetch 600 MB.
import { existsSync, lstatSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolders } from "../support/folders.ts";
import { cleanEnvironment } from "../support/whet.ts";
import { freshClone, run, works } from "./clone.ts";
import { wholeRelease } from "./project.ts";

const folder = temporaryFolders();
const root = process.getuid?.() === 0;
const canMount = root && (await works(["unshare", "-m", "true"]));
const trainOne = "train max_steps=1 eval_every=0 prompts_per_step=4 completions_per_prompt=4";

describe.skipIf(!wholeRelease)("a fresh clone", () => {
  test("installs and trains", { timeout: 400_000 }, async () => {
    const clone = freshClone(join(folder(), "first use"));
    const command = ["sh", "-c", `./whet ${trainOne} log_path=run`];
    const { code, stderr } = await run(command, { cwd: clone, env: cleanEnvironment() });
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/^whetstone: installing \d+ npm packages/);
    expect(existsSync(join(clone, "run/checkpoints.jsonl"))).toBe(true);
  });

  test("a plain npm install works too, and is then used as it is", { timeout: 400_000 }, async () => {
    const clone = freshClone(folder());
    const installed = await run(["npm", "install", "--no-audit", "--no-fund"], { cwd: clone });
    expect(installed.code, installed.stderr).toBe(0);
    const { code, stderr } = await run(["./whet", "help"], { cwd: clone, env: cleanEnvironment() });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  test.skipIf(!canMount)("on a file system that runs no programs", { timeout: 400_000 }, async () => {
    const place = folder();
    const clone = freshClone(join(place, "clone"));
    const mounted = join(place, "mounted");
    mkdirSync(mounted);
    const env = cleanEnvironment({ WHETSTONE_CACHE: folder() });
    const script =
      `mount -t tmpfs -o noexec none "${mounted}" && cp -r "${clone}" "${mounted}/clone" && cd "${mounted}/clone" && ` +
      `! ./whet help 2>/dev/null && sh whet ${trainOne} log_path="${place}/run" && [ -L node_modules ] && sh whet help`;
    const { code, stderr } = await run(["unshare", "-m", "sh", "-c", script], { env });
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/on a file system that runs no programs \(noexec\); its packages go to \S+/);
    expect(stderr.match(/installing \d+ npm packages/g)?.length).toBe(1);
    expect(lstatSync(join(place, "run/checkpoints.jsonl")).isFile()).toBe(true);
  });
});
