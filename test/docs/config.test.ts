import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { configDocs, configDocsPath, settingsPath, settingsSource } from "../../scripts/config/write.ts";

test("docs/config.md is what the schema says", () => {
  expect(readFileSync(configDocsPath, "utf8")).toBe(configDocs());
});

test("src/rl/settings.ts is what the schema says; `npm run docs` writes it", () => {
  expect(readFileSync(settingsPath, "utf8")).toBe(settingsSource());
});
