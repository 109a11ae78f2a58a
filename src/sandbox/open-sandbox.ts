// Chooses where programs run: a Sandbox Fusion server when one is named, else the embedded jail of this machine.
import { openFusion } from "./fusion/fusion.ts";
import { openJail } from "./jail.ts";
import { pythonWith } from "./packages.ts";
import { type Sandbox, SandboxError } from "./sandbox.ts";

/** Which sandbox to open. */
export interface SandboxChoice {
  /** Sandbox Fusion's address or addresses. undefined: SANDBOX_URL decides; null, "" or "none": the embedded jail. */
  sandboxUrl?: string | null | undefined;
  /** For the jail: an interpreter or a virtual environment. */
  sandboxPython?: string | undefined;
  /** For the jail: packages that programs may import, separated by commas; installed once, into an environment of their own. */
  sandboxPackages?: string | undefined;
  /** Programs in TypeScript have to type-check; the jail can ask for it. */
  typecheck?: boolean | undefined;
  /** Called with what takes long. */
  say?: ((line: string) => void) | undefined;
  /** Requests in flight per Fusion instance (default SANDBOX_MAX_CONCURRENCY, else 4), or programs at once in the jail. */
  maxConcurrency?: number | undefined;
}

/** Opens the sandbox; the caller closes it. Rejects when it is not there or does not pass its self-test. */
export async function openSandbox(choice: SandboxChoice = {}): Promise<Sandbox> {
  const url = choice.sandboxUrl === undefined ? process.env["SANDBOX_URL"] : choice.sandboxUrl;
  const { typecheck = false } = choice;
  if (url && url !== "none") {
    if (typecheck)
      throw new SandboxError(
        "sandbox/fusion-typecheck",
        "Sandbox Fusion (sandbox_url or SANDBOX_URL) runs TypeScript without checking types. Leave out typecheck=true, or take this machine's jail: sandbox_url=none.",
      );
    const maxConcurrency = choice.maxConcurrency ?? concurrencyFromEnvironment();
    const token = process.env["SANDBOX_TOKEN"];
    return openFusion({ url, maxConcurrency, token });
  }
  const python = await pythonWith(choice.sandboxPackages ?? "", choice.sandboxPython, choice.say);
  return openJail({ python, slots: choice.maxConcurrency, typecheck });
}

function concurrencyFromEnvironment(): number | undefined {
  const text = process.env["SANDBOX_MAX_CONCURRENCY"];
  if (!text) return undefined;
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new SandboxError(
    "sandbox/max-concurrency",
    `SANDBOX_MAX_CONCURRENCY is "${text}". Set it to a whole number above 0, for example 16.`,
  );
}
