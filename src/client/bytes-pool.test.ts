import { expect, test } from "vitest";
import { BytesPool } from "./bytes-pool.ts";

test("memory that was given back is used again for what fits it", () => {
  const pool = new BytesPool();
  const first = pool.take(1_000_000);
  expect(first.length).toBeGreaterThanOrEqual(1_000_000);
  expect(pool.take(1_000_000)).not.toBe(first);
  pool.give(first);
  // Neither too small, nor a waste.
  expect(pool.take(5_000_000)).not.toBe(first);
  expect(pool.take(10_000)).not.toBe(first);
  expect(pool.take(900_000)).toBe(first);
  expect(pool.take(900_000)).not.toBe(first);
  pool.give(first);
  pool.clear();
  expect(pool.take(900_000)).not.toBe(first);
});

test("no more than the limit is kept", () => {
  const pool = new BytesPool();
  const large = Array.from({ length: 3 }, () => pool.take(20_000_000));
  for (const bytes of large) pool.give(bytes);
  const again = large.map(() => pool.take(20_000_000));
  expect(again.filter((bytes) => large.includes(bytes))).toHaveLength(2);
  pool.clear();
});
