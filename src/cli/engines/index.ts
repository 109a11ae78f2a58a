// The engines of this machine: a file each.
import type { localEngineNames } from "../../rl/config-keys.ts";
import { embedded } from "./embedded.ts";
import type { LocalEngine } from "./engine.ts";
import { skyrl } from "./skyrl.ts";

export const localEngines = { embedded, skyrl } satisfies Record<(typeof localEngineNames)[number], LocalEngine>;

/** Whether a name is that of an engine which the command itself starts. */
export const isLocal = (name: unknown): name is keyof typeof localEngines =>
  typeof name === "string" && Object.hasOwn(localEngines, name);
