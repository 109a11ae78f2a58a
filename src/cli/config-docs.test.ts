import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { configDocs, configDocsPath } from "./config-docs.ts";

test("docs/config.md is what the schema says", () => {
  expect(readFileSync(configDocsPath, "utf8")).toBe(configDocs());
});
