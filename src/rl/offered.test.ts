import { expect, test } from "vitest";
import { offerOf } from "./offered.ts";

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
