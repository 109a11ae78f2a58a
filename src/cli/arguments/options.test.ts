import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { temporaryFolders } from "../../../test/support/folders.ts";
import { TrainConfig } from "../../rl/config.ts";
import { describeOptions } from "./help.ts";
import { parseArguments } from "./options.ts";

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

const parse = (...args: string[]) => parseArguments(schema, args);

describe("values", () => {
  test.each([
    ["learning_rate=1e-5", { learning_rate: 1e-5 }],
    ["--learning_rate=1e-5", { learning_rate: 1e-5 }],
    ["--learning-rate=1e-5", { learning_rate: 1e-5 }],
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
    ["__proto__=1", "config/unknown-key", /Unknown key "__proto__"/],
    ["constructor=1", "config/unknown-key", /Unknown key "constructor"/],
    ["toString=1", "config/unknown-key", /Unknown key "toString"/],
    ["@no-such.json", "config/config-file", /no-such\.json cannot be read/],
  ])("%s", (argument, code, message) => {
    expect(() => parse(argument)).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });
});

test("a switch needs no value", () => {
  expect(parse("--fast").options.fast).toBe(true);
  expect(parse("--fast", "false").options.fast).toBe(false);
  expect(parse("--fast", "max_steps=3")).toMatchObject({ options: { fast: true, max_steps: 3 }, words: [] });
  expect(parse("--fast", "word")).toMatchObject({ options: { fast: true }, words: ["word"] });
});

describe("config files", () => {
  const folders = temporaryFolders();
  const file = (text: string, name = "run.json") => {
    const path = join(folders(), name);
    writeFileSync(path, text);
    return path;
  };

  test("keys come from the file; the command line wins, wherever the file stands", () => {
    const path = file(
      '\uFEFF{\r\n // why\r\n "max_steps": 5, "learning_rate": "1e-3", "parts": ["x"], "extra": {"y": 2}, "limit": null,\r\n}',
    );
    const { options, origins, layers } = parse("max_steps=7", `@${path}`);
    expect(options).toMatchObject({ max_steps: 7, learning_rate: 1e-3, parts: ["x"], extra: { y: 2 }, limit: null });
    expect(origins.get("learning_rate")).toBe(`${path}, line 3`);
    expect(origins.has("max_steps")).toBe(false);
    expect(layers).toMatchObject([{ max_steps: 5 }, { max_steps: 7 }]);
    const later = file('{"max_steps": 6}');
    expect(parse(`@${path}`, `@${later}`).options.max_steps).toBe(6);
  });

  test.each([
    [
      '{"max_steps": 5,\n "nmae": "x"}',
      "config/unknown-key",
      /run\.json, line 2: Unknown key "nmae"\. Did you mean "name"/,
    ],
    ['{\n\n"max_steps": "many"}', "config/bad-value", /run\.json, line 3: max_steps=many is not valid/],
    ['{"max_steps": 5.5}', "config/bad-value", /line 1: max_steps=5\.5/],
    [
      '{"max_steps": 5\n "name": 1}',
      "config/config-file",
      /run\.json, line 2, column 2 is not JSON: "," or "}" is expected/,
    ],
    ['["max_steps"]', "config/config-file", /holds no JSON object/],
    ['{"__proto__": 1}', "config/unknown-key", /Unknown key "__proto__"/],
    ["", "config/config-file", /line 1, column 1/],
  ])("%s", (text, code, message) => {
    const path = file(text);
    expect(() => parse(`@${path}`)).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });

  test("paths that begin with ./ are the file's; others are as they stand", () => {
    const path = file('{"name": "./a.jsonl, ../b.jsonl,c.jsonl,starter"}');
    const folder = dirname(path);
    expect(parse(`@${path}`).options.name).toBe(`${folder}/a.jsonl, ${join(folder, "../b.jsonl")},c.jsonl,starter`);
  });

  test("the record of a run is a config file: what is no setting, its directory and blanked passwords are passed over", () => {
    const path = file(
      '{"max_steps": 5, "name": "http://***@host", "log_path": "/old", "started_at": "2026", "data_fingerprint": "x", "engine": "embedded"}',
    );
    const { options, given, notices } = parse(`@${path}`);
    expect(options).toMatchObject({ max_steps: 5, name: "" });
    expect([...given]).toEqual(["max_steps"]);
    expect(notices).toEqual([expect.stringMatching(/line 1: name was written without its password/)]);
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
