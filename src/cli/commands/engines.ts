// `./whet engines`: the engines of this machine, what is installed of them and how much disk it takes; removes one.
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { promisify } from "node:util";
import { z } from "zod";
import { ConfigError, WhetstoneError } from "../../core/errors.ts";
import { whet } from "../../core/program.ts";
import { commandOf } from "../command.ts";
import type { LocalEngine } from "../engines/engine.ts";
import { isLocal, localEngines } from "../engines/index.ts";
import { describeGpu, gpus, size } from "../engines/machine.ts";
import { textTable } from "../text/table.ts";

const EnginesOptions = z.strictObject({
  remove: z.string().default("").describe("an engine whose installation is to go; runs and models stay"),
});

export const command = commandOf(EnginesOptions, {
  usage: "engines [remove=NAME]",
  about: [
    "Lists the engines that engine= of train starts on this machine: what is installed of each, and the disk it takes.",
  ],
  async run({ options }) {
    if (options.remove !== "") return remove(options.remove);
    const rows = await Promise.all(Object.entries(localEngines).map(([name, engine]) => rowOf(name, engine)));
    for (const line of textTable(["engine", "installed", "disk", "what it is"], rows, "llrl")) console.log(line);
    const found = await gpus();
    console.log("");
    for (const gpu of found) console.log(describeGpu(gpu));
    if (found.length === 0) console.log("no NVIDIA GPU found");
    console.log(`${whet} train engine=NAME model_name=MODEL uses one, and installs what is not here`);
    return 0;
  },
});

async function rowOf(name: string, { summary, installs }: LocalEngine): Promise<string[]> {
  const folder = installs?.folder();
  const isHere = folder !== undefined && existsSync(folder);
  const what = !isHere ? "no" : installs!.isWhole() ? installs!.what : `${installs!.what}, in part`;
  return [name, what, isHere ? await diskOf(folder) : "", summary];
}

async function diskOf(folder: string): Promise<string> {
  const { stdout } = await promisify(execFile)("du", ["-sk", folder], { timeout: 60_000 }).catch(() => ({
    stdout: "",
  }));
  const kibi = Number.parseInt(stdout, 10);
  return Number.isNaN(kibi) ? "?" : size(kibi * 1024);
}

async function remove(name: string): Promise<number> {
  const engine: LocalEngine | undefined = isLocal(name) ? localEngines[name] : undefined;
  const folder = engine?.installs?.folder();
  if (folder === undefined)
    throw new ConfigError(
      "config/bad-value",
      `remove=${name} is no engine. There are: ${Object.keys(localEngines).join(", ")}.`,
    );
  if (!existsSync(folder)) {
    console.log(`${name} is not installed`);
    return 0;
  }
  const user = processIn(folder);
  if (user !== undefined)
    throw new WhetstoneError(
      "cli/engine-in-use",
      `${name} is in use by process ${user}. Wait until it has ended, or end it: kill ${user}`,
    );
  const disk = await diskOf(folder);
  // Renamed first: a folder that is removed in part would look whole.
  const aside = `${folder}.removed`;
  rmSync(aside, { recursive: true, force: true });
  renameSync(folder, aside);
  rmSync(`${folder}-compiled`, { recursive: true, force: true });
  rmSync(aside, { recursive: true, force: true });
  console.log(`${name} is removed: ${disk} of ${folder}`);
  return 0;
}

/** A process that was started from a folder. */
function processIn(folder: string): number | undefined {
  for (const name of existsSync("/proc") ? readdirSync("/proc") : []) {
    if (!/^\d+$/.test(name)) continue;
    try {
      if (readFileSync(`/proc/${name}/cmdline`, "utf8").startsWith(`${folder}/`)) return Number(name);
    } catch {
      // It has ended.
    }
  }
  return undefined;
}
