// Packing: nothing is lost, prefixes are found, and every index points where the attention expects it.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type PackedRun, packBatch } from "./packing.ts";
import { findPrefixGroups } from "./prefix-groups.ts";
import { lexicographic, sharedTokens } from "./prefix-trees.ts";

const tokens = (...values: number[]): Int32Array => Int32Array.from(values);
const batches = fc.array(fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 30 }), {
  minLength: 1,
  maxLength: 12,
});
/** Completions of a few prompts, in any order. */
const grouped = fc
  .array(
    fc.tuple(fc.integer({ min: 0, max: 2 }), fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 8 })),
    {
      minLength: 2,
      maxLength: 12,
    },
  )
  .map((items) =>
    items.map(([prompt, rest]) => [...Array.from({ length: 20 }, (_, i) => (i * (prompt + 3)) % 10), ...rest]),
  );

describe("findPrefixGroups", () => {
  const groupsOf = (batch: readonly Int32Array[]) => {
    const order = lexicographic(batch);
    return findPrefixGroups(order, sharedTokens(order, batch));
  };

  test("puts the completions of a prompt together, whatever their order", () => {
    const [a, b] = [Array.from({ length: 40 }, () => 1), Array.from({ length: 40 }, () => 2)];
    const batch = [tokens(...a, 7), tokens(...b, 7), tokens(...a, 8, 8), tokens(...b, 9), tokens(5, 6)];
    const groups = groupsOf(batch).map(({ members, prefixLength }) => [[...members].sort(), prefixLength]);
    expect(groups).toContainEqual([[0, 2], 40]);
    expect(groups).toContainEqual([[1, 3], 40]);
    expect(groups).toContainEqual([[4], 0]);
  });

  test("prefers many long prefixes to one short prefix that all share", () => {
    const system = Array.from({ length: 20 }, () => 1);
    const batch = [2, 3].flatMap((prompt) =>
      [4, 5].map((completion) => tokens(...system, ...Array.from({ length: 50 }, () => prompt), completion)),
    );
    expect(groupsOf(batch).map(({ prefixLength }) => prefixLength)).toEqual([70, 70]);
  });

  test("every sequence is in exactly one group and begins with the group's prefix", () => {
    fc.assert(
      fc.property(fc.oneof(batches, grouped), (batch) => {
        const sequences = batch.map((values) => tokens(...values));
        const groups = groupsOf(sequences);
        expect(groups.flatMap(({ members }) => members).sort((x, y) => x - y)).toEqual(sequences.map((_, i) => i));
        for (const { members, prefixLength } of groups) {
          const prefix = sequences[members[0]!]!.subarray(0, prefixLength);
          for (const member of members) expect(sequences[member]!.subarray(0, prefixLength)).toEqual(prefix);
        }
      }),
    );
  });
});

describe("packBatch", () => {
  test.each([4, 30, 1000])("with a budget of %i, every token of every sequence is where its rows say", (budget) => {
    fc.assert(
      fc.property(fc.oneof(batches, grouped), (batch) => {
        const sequences = batch.map((values) => tokens(...values));
        const runs = packBatch(sequences, budget);
        const seen = runs.flatMap((run) => run.sequences.map(({ index }) => index));
        expect(seen.sort((x, y) => x - y)).toEqual(sequences.map((_, i) => i));
        for (const run of runs) {
          for (const { index, rows } of run.sequences) {
            expect(rows.map((row) => run.tokens[row]!)).toEqual(sequences[index]);
            expect(rows.map((row) => run.positions[row]!)).toEqual(sequences[index]!.map((_, position) => position));
          }
          checkPlaces(run);
        }
      }),
    );
  });

  test("what attention may look at is a sequence's own past and nothing else", () => {
    fc.assert(
      fc.property(fc.oneof(batches, grouped), (batch) => {
        const sequences = batch.map((values) => tokens(...values));
        for (const run of packBatch(sequences, 1000)) {
          const visible = visibleRows(run);
          for (const { rows } of run.sequences) {
            for (const [position, row] of rows.entries()) {
              expect(visible.get(row)!.sort((x, y) => x - y)).toEqual(
                [...rows.slice(0, position + 1)].sort((x, y) => x - y),
              );
            }
          }
        }
      }),
    );
  });

  test("a group's prompt is computed once", () => {
    const prompt = Array.from({ length: 150 }, (_, i) => i);
    const sequences = Array.from({ length: 16 }, (_, i) => tokens(...prompt, i, i, i));
    const runs = packBatch(sequences, 2048);
    expect(runs.map((run) => run.tokens.length)).toEqual([150 + 16 * 3 + 1]);
  });
});

describe("trees", () => {
  const prompt = Array.from({ length: 60 }, (_, i) => i);
  const answer = (...ends: number[]): Int32Array =>
    tokens(...prompt, ...Array.from({ length: 20 }, (_, i) => i), ...ends);

  test("what answers have in common is computed once, though they part and some are the same", () => {
    const sequences = [answer(1, 2), answer(1, 3), answer(1, 2), answer(4), tokens(...prompt, 9, 9)];
    const runs = packBatch(sequences, 2048);
    expect(runs.map(({ blocks }) => blocks.map(({ kind }) => kind))).toEqual([["tree"]]);
    expect(runs[0]!.tokens).toHaveLength(60 + 20 + (1 + 2) + 1 + 2 + 1);
  });

  test("problems whose prompts begin with the same instructions are a tree each", () => {
    const instructions = Array.from({ length: 40 }, (_, i) => i);
    const problem = (name: number): number[] => [...instructions, ...Array.from({ length: 100 }, () => name)];
    const sequences = Array.from({ length: 8 }, (_, name) => name).flatMap((name) =>
      [1, 1, 2, 2].map((way, end) => tokens(...problem(100 + name), 9, ...Array.from({ length: 40 }, () => way), end)),
    );
    const runs = packBatch(sequences, 1280);
    expect(runs.flatMap(({ blocks }) => blocks.map(({ kind, groups }) => [kind, groups]))).toEqual([
      ["tree", 2],
      ["tree", 2],
      ["tree", 2],
      ["tree", 2],
    ]);
    const rows = runs.reduce((total, run) => total + run.tokens.length - 1, 0);
    expect(rows).toBe(8 * (40 + 100 + 1 + 2 * 40 + 4));
  });

  test("answers that have nothing in common stay apart: a tree's attention would look at all pairs", () => {
    const sequences = [1, 2, 3, 4].map((first) =>
      tokens(...prompt, ...Array.from({ length: 50 }, (_, i) => first * i)),
    );
    expect(packBatch(sequences, 2048).map(({ blocks }) => blocks.map(({ kind }) => kind))).toEqual([
      ["plain", "shared"],
    ]);
  });
});

/** Places and rows are each other's inverse; whatever else there is points at padding. */
function checkPlaces({ tokens: all, places, blocks }: PackedRun): void {
  const dummy = all.length - 1;
  const joined = blocks.flatMap((block) => [...block.rows]);
  for (let row = 0; row <= dummy; row++) expect(joined[places[row]!]).toBe(row);
  for (const block of blocks) {
    for (let row = 0; row <= dummy; row++) {
      const there = block.rows[block.places[row]!];
      expect([row, dummy]).toContain(there);
      if (block.prefixPlaces) expect([row, dummy]).toContain(block.prefixRows![block.prefixPlaces[row]!]);
    }
    expect(new Set(block.rows.filter((row) => row !== dummy)).size).toBe(
      block.rows.filter((row) => row !== dummy).length,
    );
  }
}

/** For every row: the rows it may look at, by the biases. */
function visibleRows({ blocks, tokens: all }: PackedRun): Map<number, number[]> {
  const dummy = all.length - 1;
  const visible = new Map<number, number[]>();
  for (const { groups, members, length, prefixLength, rows, prefixRows, bias, kind } of blocks) {
    const keys = prefixLength + length;
    for (let sequence = 0; sequence < groups * members; sequence++) {
      const group = Math.floor(sequence / members);
      const own = rows.subarray(sequence * length, (sequence + 1) * length);
      const prefix = prefixRows?.subarray(group * prefixLength, (group + 1) * prefixLength) ?? [];
      const keyRows = [...prefix, ...own];
      for (const [query, row] of own.entries()) {
        if (row === dummy) continue;
        const start = ((kind === "plain" ? 0 : group * length) + query) * keys;
        visible.set(
          row,
          keyRows.filter((_, key) => bias[start + key] === 0),
        );
      }
    }
  }
  return visible;
}
