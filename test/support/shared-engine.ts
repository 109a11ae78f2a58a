// One embedded engine for all tests of a worker process that do not ask where theirs runs: to start one takes longer than they train.
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import { startServe } from "../contract/serve-process.ts";

export interface SharedEngine {
  baseUrl: string;
  apiKey: string;
  /** Where it keeps checkpoints. */
  stateDir: string;
}

let started: Promise<SharedEngine> | undefined;

/** It ends with this process. */
export const sharedEngine = (): Promise<SharedEngine> => (started ??= start());

async function start(): Promise<SharedEngine> {
  const stateDir = mkdtempSync(join(inject("folder"), "engine-"));
  const { baseUrl, apiKey } = await startServe([`state_dir=${stateDir}`]);
  return { baseUrl, apiKey, stateDir };
}
