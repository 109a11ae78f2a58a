// What this machine has for an engine: the NVIDIA GPU with its driver, memory, room on a disk.
import { execFile } from "node:child_process";
import { totalmem } from "node:os";
import { promisify } from "node:util";

export interface Gpu {
  name: string;
  driver: string;
  totalBytes: number;
  freeBytes: number;
}

export const gib = 2 ** 30;

export const size = (bytes: number): string =>
  bytes < gib ? `${Math.ceil(bytes / 2 ** 20)} MiB` : `${(bytes / gib).toFixed(1)} GiB`;

export const describeGpu = ({ name, driver, totalBytes, freeBytes }: Gpu): string =>
  `${name}, ${size(freeBytes)} of ${size(totalBytes)} free, driver ${driver}`;

/** The GPUs that the driver lists; none without a driver. */
export async function gpus(): Promise<Gpu[]> {
  const query = ["--query-gpu=name,driver_version,memory.total,memory.free", "--format=csv,noheader,nounits"];
  const { stdout } = await promisify(execFile)("nvidia-smi", query, { timeout: 30_000 }).catch(() => ({ stdout: "" }));
  return stdout
    .trim()
    .split("\n")
    .flatMap((line) => {
      const [name, driver, total, free] = line.split(",").map((part) => part.trim());
      const mebi = 2 ** 20;
      return name && driver && Number(total) > 0
        ? [{ name, driver, totalBytes: Number(total) * mebi, freeBytes: Number(free) * mebi }]
        : [];
    });
}

/** Bytes of memory: of the machine, or of the container where that is less. */
export const memory = (): number => Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
