// Where downloads and what is computed from them are kept between runs. Everything there can be deleted.
import { homedir } from "node:os";
import { join } from "node:path";

/** WHETSTONE_CACHE, else ~/.cache/whetstone. */
export function cacheFolder(): string {
  return process.env["WHETSTONE_CACHE"] || join(homedir(), ".cache", "whetstone");
}
