// A folder for what lives longer than a test file; gone when all of them have ended.
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { inMemory } from "./support/folders.ts";

export default function setup({ provide }: TestProject): () => void {
  const folder = mkdtempSync(join(inMemory(), "whet-test-"));
  provide("folder", folder);
  // An engine that ends with its worker may still be writing.
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

declare module "vitest" {
  interface ProvidedContext {
    folder: string;
  }
}
