// `npm run release:check`: everything that must hold before a version is published; it publishes nothing. Needs the npm registry, about
// 2 GB of disk and a quarter of an hour on two cores.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
const { version } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));

/** Steps that are commands; with `WHET_RELEASE=1` the package's tests cover every Node version, real downloads and real file systems. */
const steps = [
  ["types and lint", ["npm", "run", "check"]],
  ["the package, on every supported Node", ["npx", "vitest", "run", "test/package"]],
  [
    "npm publish, up to the last step",
    ["npm", "publish", "--dry-run", "--tag", version.includes("-") ? "next" : "latest"],
  ],
];

const failures = [];
if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) failures.push(`version ${version} in package.json`);
const changelog = readFileSync(`${root}CHANGELOG.md`, "utf8");
if (!changelog.includes("## Unreleased") && !changelog.includes(`## ${version}`))
  failures.push(`CHANGELOG.md says nothing of ${version}`);
for (const [name, [program, ...args]] of steps) {
  console.log(`\nrelease:check: ${name}`);
  const env = { ...process.env, WHET_RELEASE: "1" };
  if (spawnSync(program, args, { cwd: root, stdio: "inherit", env }).status !== 0) failures.push(name);
}
console.log(
  failures.length === 0 ? `\nrelease:check: ${version} is ready` : `\nrelease:check: failed: ${failures.join("; ")}`,
);
process.exitCode = failures.length === 0 ? 0 : 1;
