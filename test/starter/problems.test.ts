// The bundled problems: what they must have, that the parts share nothing, and that the generator gives them again.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildMessages } from "../../src/data/question.ts";
import { certify, createGrader, normalizeTests, openSandbox } from "../../src/grading/index.ts";
import { getRenderer } from "../../src/renderers/index.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { loadTokenizer } from "../../src/tokenizer/index.ts";
import { foldersInMemory } from "../support/folders.ts";

interface Row {
  id: string;
  problem: string;
  tests: string;
  starter_code: string;
  metadata: { func_name: string | null };
  solutions: string[];
  family: string;
  composition: string;
  params: Record<string, number | string>[];
  tier: number;
  kind: "stdin" | "functional";
  part: "train" | "seen" | "composition" | "unseen";
  source: string;
}

const root = fileURLToPath(new URL("../../", import.meta.url));
const newFolder = foldersInMemory();
const read = (file: string): Row[] =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
const train = read(join(root, "data/starter/train.jsonl"));
const held = read(join(root, "data/starter/test.jsonl"));
const part = (name: Row["part"]) => held.filter((row) => row.part === name);

const familiesOf = (row: Row) => row.composition.split("+");
const pairsOf = (row: Row) =>
  familiesOf(row)
    .slice(1)
    .map((name, index) => `${familiesOf(row)[index]}+${name}`);
/** Each family of a row with its parameters, where it has any. */
const stepsOf = (row: Row) => familiesOf(row).map((name, index) => `${name} ${JSON.stringify(row.params[index])}`);
const keyOf = (row: Row) => stepsOf(row).join(", ");
const overlap = <Item>(first: Iterable<Item>, second: Iterable<Item>) =>
  [...new Set(first)].filter(Set.prototype.has, new Set(second));

describe("size and shape", () => {
  test("at least 2,000 problems to train on and 100 in each part of the test set, from more than 40 families", () => {
    expect(train.length).toBeGreaterThanOrEqual(2000);
    for (const name of ["seen", "composition", "unseen"] as const)
      expect(part(name).length).toBeGreaterThanOrEqual(100);
    expect(new Set(train.flatMap(familiesOf)).size).toBeGreaterThanOrEqual(40);
    expect(new Set(train.map((row) => row.tier))).toEqual(new Set([1, 2, 3]));
  });

  test.each([["train", train] as const, ["test", held] as const])(
    "both kinds in %s, a third each at least",
    (_, rows) => {
      for (const kind of ["stdin", "functional"]) {
        expect(rows.filter((row) => row.kind === kind).length).toBeGreaterThan(rows.length / 3);
      }
    },
  );

  test("every row has an id of its own, at least 8 tests of its kind, a reference, and names its function", () => {
    const rows = [...train, ...held];
    expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
    for (const row of rows) {
      const { tests, reason } = normalizeTests(row.tests, { source: row.source, metadata: row.metadata });
      expect([row.id, reason, tests.length >= 8, row.solutions.length]).toEqual([row.id, null, true, 1]);
      expect(tests.every((one) => one.kind === row.kind)).toBe(true);
      expect(new Set(tests.map((one) => JSON.stringify(one.kind === "stdin" ? one.input : one.args))).size).toBe(
        tests.length,
      );
      const { func_name: name } = row.metadata;
      if (row.kind === "functional") expect(row.starter_code).toContain(`def ${name}(`);
      else expect([row.starter_code, name]).toEqual(["", null]);
    }
  });

  test("statements are not alike: wordings vary within a composition", () => {
    expect(new Set(train.map((row) => row.problem)).size).toBe(train.length);
    const wordings = new Map<string, Set<string>>();
    for (const row of train.filter((row) => row.composition === "keep_at_least")) {
      const text = row.problem.replace(/\d+/g, "#");
      wordings.set(row.composition, (wordings.get(row.composition) ?? new Set()).add(text));
    }
    expect(wordings.get("keep_at_least")!.size).toBeGreaterThan(5);
  });

  test("a prompt is about 150 tokens of nano-coder's vocabulary", async () => {
    const renderer = getRenderer("qwen3_instruct", await loadTokenizer(join(root, "models/nano-coder")));
    const lengths = [...train, ...held].map(
      (row) =>
        renderer.buildGenerationPrompt(buildMessages({ question: row.problem, starterCode: row.starter_code })).length,
    );
    expect(lengths.reduce((sum, length) => sum + length) / lengths.length).toBeLessThan(160);
    expect(Math.max(...lengths)).toBeLessThan(240);
  });
});

describe("the parts share nothing that would make them easy", () => {
  test("no statement and no chain of families with parameters stands in two splits", () => {
    expect(
      overlap(
        train.map((row) => row.problem),
        held.map((row) => row.problem),
      ),
    ).toEqual([]);
    expect(overlap(train.map(keyOf), held.map(keyOf))).toEqual([]);
    expect(new Set(held.map(keyOf)).size).toBe(held.length);
  });

  test("seen: families and neighbours of training, with a parameter value that training never has", () => {
    const known = new Set(train.flatMap(stepsOf));
    const neighbours = new Set(train.flatMap(pairsOf));
    for (const row of part("seen")) {
      expect(stepsOf(row).some((step) => !step.endsWith("{}") && !known.has(step))).toBe(true);
      expect(pairsOf(row).every((pair) => neighbours.has(pair))).toBe(true);
    }
  });

  test("composition: families of training, two of which are never neighbours there", () => {
    const families = new Set(train.flatMap(familiesOf));
    const neighbours = new Set(train.flatMap(pairsOf));
    for (const row of part("composition")) {
      expect(familiesOf(row).every((name) => families.has(name))).toBe(true);
      expect(pairsOf(row).some((pair) => !neighbours.has(pair))).toBe(true);
    }
  });

  test("unseen: each problem needs a family that training does not have", () => {
    const families = new Set(train.flatMap(familiesOf));
    for (const row of part("unseen")) expect(familiesOf(row).some((name) => !families.has(name))).toBe(true);
  });
});

const python = execFileSync("python3", ["-c", "import sys; print(sys.version_info[1])"], { encoding: "utf8" }).trim();
const tooOld = Number(python) < 10;
if (tooOld) console.warn(`skipped: the generator needs Python 3.10 or newer, python3 here is 3.${python}`);

test.skipIf(tooOld)("the generator gives the same files again", () => {
  const folder = newFolder();
  execFileSync("python3", ["-B", join(root, "scripts/starter/generate.py"), "--out", folder], { stdio: "pipe" });
  for (const name of ["train.jsonl", "test.jsonl", "README.md"]) {
    const same = readFileSync(join(folder, name)).equals(readFileSync(join(root, "data/starter", name)));
    expect([name, same]).toEqual([name, true]);
  }
});

describe("in the sandbox", () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await openSandbox({ sandboxUrl: null });
  });
  afterAll(() => sandbox.close());

  test("references pass and know-nothing programs fail, on every 200th problem (./whet certify checks all)", async () => {
    const grader = createGrader({ sandbox, cacheSize: 0 });
    const chosen = [...train, ...held].filter((_, index) => index % 200 === 0);
    const certificates = await Promise.all(
      chosen.map((row) => {
        const { tests } = normalizeTests(row.tests, { source: row.source, metadata: row.metadata });
        return certify(grader, { problem: { id: row.id, tests }, solutions: row.solutions, repeats: 1 });
      }),
    );
    expect(certificates.flatMap(({ problems }) => problems)).toEqual([]);
  });
});
