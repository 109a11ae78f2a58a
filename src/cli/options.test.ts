import { describe, expect, test } from "vitest";
import { z } from "zod";
import { TrainConfig } from "../rl/config.ts";
import { describeOptions, parseArguments } from "./options.ts";

const schema = z.strictObject({
  learning_rate: z.number().positive().default(4e-5).describe("Adam learning rate"),
  max_steps: z.int().default(-1),
  name: z.string().default(""),
  fast: z.boolean().default(false),
  parts: z.array(z.string()).default([]),
  extra: z.record(z.string(), z.number()).default({}),
  mode: z.enum(["slow", "quick"]).default("slow"),
  limit: z.number().nullable().default(5),
});

const parse = (...args: string[]) => parseArguments(schema, args, { lr: "learning_rate" });

describe("values", () => {
  test.each([
    ["learning_rate=1e-5", { learning_rate: 1e-5 }],
    ["--learning_rate=1e-5", { learning_rate: 1e-5 }],
    ["--learning-rate=1e-5", { learning_rate: 1e-5 }],
    ["lr=1e-5", { learning_rate: 1e-5 }],
    ["max_steps=1_000", { max_steps: 1000 }],
    ["max_steps=-1", { max_steps: -1 }],
    ["name=a=b", { name: "a=b" }],
    ["name=12", { name: "12" }],
    ["name=", { name: "" }],
    ["fast=true", { fast: true }],
    ["fast=0", { fast: false }],
    ["parts=a, b", { parts: ["a", "b"] }],
    ['extra={"x":1.5}', { extra: { x: 1.5 } }],
    ["mode=quick", { mode: "quick" }],
    ["limit=none", { limit: null }],
  ])("%s", (argument, expected) => {
    expect(parse(argument).options).toMatchObject(expected);
  });

  test("a key and its value can be two words, the last one wins, and other words are kept", () => {
    const { options, given, words } = parse("first", "--max_steps", "5", "max_steps=7", "second");
    expect(options.max_steps).toBe(7);
    expect([...given]).toEqual(["max_steps"]);
    expect(words).toEqual(["first", "second"]);
  });
});

describe("mistakes", () => {
  test.each([
    ["learning_rte=1", "config/unknown-key", /Did you mean "learning_rate"/],
    ["zzzzzzzz=1", "config/unknown-key", /Known keys: learning_rate/],
    ["learning_rate=fast", "config/bad-value", /learning_rate=fast/],
    ["learning_rate=-1", "config/bad-value", /learning_rate=-1/],
    ["max_steps=1.5", "config/bad-value", /max_steps=1.5/],
    ["fast=perhaps", "config/bad-value", /fast=perhaps/],
    ["mode=wild", "config/bad-value", /slow.*quick/],
    ["extra=no", "config/bad-value", /extra=no/],
    ["--name", "config/missing-value", /name=VALUE/],
  ])("%s", (argument, code, message) => {
    expect(() => parse(argument)).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });
});

test("help lists every key with its default and meaning", () => {
  expect(describeOptions(schema)).toMatch(/learning_rate=0\.00004\s+Adam learning rate/);
  expect(describeOptions(TrainConfig).split("\n")).toHaveLength(Object.keys(TrainConfig.shape).length);
});

test("the training config parses what a person types", () => {
  const { options } = parseArguments(TrainConfig, ["learning_rate=1e-5", "max_steps=100", "eval_every=5"]);
  expect(options).toMatchObject({ learning_rate: 1e-5, max_steps: 100, eval_every: 5 });
});
