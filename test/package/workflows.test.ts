// The workflow files run what everybody runs, and are sound: actionlint reads them where it is. Go compiles it for a minute, with
// WHET_COMPAT=1 ./whet test test/package/workflows
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { cacheFolder } from "../../src/core/cache.ts";
import { findOnPath } from "../../src/core/languages/machine.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = join(root, ".github/workflows");
const workflow = (name: string) => readFileSync(join(folder, name), "utf8");

test("every supported Node runs the one command, and a tag publishes what passed", () => {
  expect(readdirSync(folder).sort()).toEqual(["release.yml", "test.yml"]);
  const [, nodes] = /node: \[(.*)\]/.exec(workflow("test.yml"))!;
  const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { engines: { node: string } };
  expect(nodes!.split(", ").map(Number)).toEqual([20, 22, 24]);
  expect(Number(/\d+/.exec(engines.node)![0])).toBe(20);
  expect(workflow("test.yml")).toMatch(/- run: \.\/whet test$/m);
  expect(workflow("release.yml")).toMatch(/needs: check[\s\S]*npm publish --provenance/);
});

test("actionlint finds nothing in them", { timeout: 300_000 }, () => {
  const actionlint = findActionlint();
  if (!actionlint) {
    console.warn("skipping actionlint: it is not on PATH, and is compiled only with WHET_COMPAT=1, Go and a network");
    return;
  }
  const { status, stdout, stderr } = spawnSync(actionlint, ["-no-color"], { cwd: root, encoding: "utf8" });
  expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: "" });
});

/** On PATH, or made once by Go in the cache folder, where it then is for every run. */
function findActionlint(): string | undefined {
  const made = join(cacheFolder(), "tools", "actionlint-1.7.12", "actionlint");
  const found = findOnPath("actionlint") ?? (existsSync(made) ? made : undefined);
  if (found || process.env["WHET_COMPAT"] !== "1" || !findOnPath("go")) return found;
  spawnSync("go", ["install", "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"], {
    env: { ...process.env, GOBIN: join(made, ".."), GOFLAGS: "-modcacherw" },
    timeout: 240_000,
  });
  return existsSync(made) ? made : undefined;
}
