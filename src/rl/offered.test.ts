import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolders } from "../../test/support/folders.ts";
import { presetConfig } from "./config.ts";
import { offerOf, withinWindow } from "./offered.ts";

const newFolder = temporaryFolders();

const models = [
  { name: "owner/base", maxContextLength: 32768, trainable: true },
  { name: "owner/base:peft:65536", maxContextLength: 60000, trainable: true },
  { name: "owner/silent", maxContextLength: undefined, trainable: undefined },
];

test.each([
  ["owner/base", 32768],
  ["owner/base:peft:65536", 60000],
  ["owner/base:peft:131072", 131072],
  ["owner/silent", undefined],
  ["owner/silent:peft:131072", 131072],
])("the window of %s is %s", (name, window) => {
  expect(offerOf(models, name)).toMatchObject({ name });
  expect(offerOf(models, name)!.maxContextLength).toBe(window);
});

test.each(["owner/other", "owner/other:peft:131072", "owner/base:peft:", "owner/base:other"])(
  "%s is not offered",
  (name) => {
    expect(offerOf(models, name)).toBeUndefined();
  },
);

test.each([
  [8192, undefined, 8192, "the folder says"],
  [8192, 4096, 4096, "the server takes"],
  [65536, undefined, 32768, undefined],
])("of a folder made for %s tokens, on a server that takes %s, %s count", (made, taken, window, why) => {
  const folder = newFolder();
  writeFileSync(join(folder, "config.json"), JSON.stringify({ max_position_embeddings: made }));
  const said: string[] = [];
  const logger = { info: (line: string) => void said.push(line), warn: () => {}, error: () => {}, detail: () => {} };
  const config = { ...presetConfig("deepcoder"), model_name: folder };
  const offer = { name: folder, maxContextLength: taken, trainable: true };
  expect(withinWindow(config, offer, logger).context_window).toBe(window);
  expect(said).toEqual(why === undefined ? [] : [expect.stringContaining(why)]);
});
