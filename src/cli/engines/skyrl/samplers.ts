// SkyRL writes each sampler without a name to the disk, a whole adapter, and never takes one away: a step leaves 39 MB of a model of 135
// million parameters. Only the newest is ever sampled where samplers are not frozen.
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

const unnamed = /^ss\d+_seq\d+\.tar\.gz$/;

/** Removes each model's samplers without a name, except for the newest `keep`. */
export function dropSamplers(checkpoints: string, keep: number): void {
  for (const model of entriesOf(checkpoints)) {
    const folder = join(checkpoints, model, "sampler_weights");
    const files = entriesOf(folder)
      .filter((name) => unnamed.test(name))
      .map((name) => join(folder, name));
    const ages = new Map(files.map((path) => [path, statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0]));
    files.sort((a, b) => ages.get(b)! - ages.get(a)!);
    for (const path of files.slice(keep)) for (const part of [path, `${path}.probe`]) rmSync(part, { force: true });
  }
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // not written yet, or a file
  }
}
