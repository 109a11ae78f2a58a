// What comes with this installation: the models.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const models = fileURLToPath(new URL("../../models/", import.meta.url));

/** The folder of a bundled model, or undefined where none has this name. */
export function bundledModel(name: string): string | undefined {
  if (!/^[\w-]+$/.test(name)) return undefined;
  const folder = join(models, name);
  return existsSync(join(folder, "config.json")) ? folder : undefined;
}
