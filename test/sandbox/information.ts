// What one program learns of what another one sent: how many bits, and whether that could be chance. Bits are sent in a random order, so whatever
// a busy or cold machine adds to what is seen has nothing to do with them, and shuffling the order says how often noise looks like this.
import { randomInt } from "node:crypto";

/** What was sent, and what was seen then. */
export type Use = readonly [sent: boolean, seen: string];

const shuffles = 4_000;
/** Less likely than this by chance: a leak. */
export const leakBelow = 0.0005;
/** As likely as this by chance: noise. What lies between is measured further. */
export const noiseAbove = 0.2;

/** As many ones as zeros, in an order that nothing predicts. */
export function randomBits(uses: number): boolean[] {
  const bits = Array.from({ length: uses }, (_, index) => index % 2 === 0);
  shuffle(bits, () => randomInt(2 ** 47) / 2 ** 47);
  return bits;
}

function shuffle(bits: boolean[], random: () => number): void {
  for (let last = bits.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [bits[last], bits[other]] = [bits[other]!, bits[last]!];
  }
}

/** Bits per use: the mutual information of what was sent and what was seen, as counted. Noise makes it larger than 0, never smaller. */
export function information(uses: readonly Use[]): number {
  const kinds = kindsOf(uses);
  return carriedBy(
    uses.map(([sent]) => sent),
    kinds,
  );
}

/** What was seen as numbers from 0 on. */
function kindsOf(uses: readonly Use[]): number[] {
  const known = [...new Set(uses.map(([, seen]) => seen))];
  return uses.map(([, seen]) => known.indexOf(seen));
}

function carriedBy(bits: readonly boolean[], kinds: readonly number[]): number {
  const count = new Array<number>(2 * (Math.max(...kinds) + 1)).fill(0);
  for (let index = 0; index < bits.length; index++) count[2 * kinds[index]! + (bits[index] ? 1 : 0)]!++;
  const ones = bits.filter(Boolean).length;
  let total = 0;
  count.forEach((both, index) => {
    const sent = index % 2 === 1 ? ones : bits.length - ones;
    const seen = both + count[index ^ 1]!;
    if (both > 0) total += (both / bits.length) * Math.log2((both * bits.length) / (sent * seen));
  });
  return total;
}

/** How often the same sights, with the sent bits in another random order, would carry as much. */
export function chance(uses: readonly Use[]): number {
  const kinds = kindsOf(uses);
  if (kinds.every((kind) => kind === 0)) return 1;
  const carried = information(uses) - 1e-9;
  const bits = uses.map(([sent]) => sent);
  let asMuch = 0;
  for (let n = 0; n < shuffles; n++) {
    shuffle(bits, Math.random);
    if (carriedBy(bits, kinds) >= carried) asMuch++;
  }
  return (asMuch + 1) / (shuffles + 1);
}

/** Numbers say more than words: seen as above or below the middle of what was seen. */
export function classes(seen: readonly string[]): string[] {
  const numbers = seen.map((text) => Number(/^(?:number|share) ([\d.]+)$/.exec(text)?.[1] ?? Number.NaN));
  if (numbers.some(Number.isNaN)) return [...seen];
  // A counter only grows: what matters is the step from the last look.
  const steps = seen[0]!.startsWith("number") ? numbers.map((n, i) => n - (numbers[i - 1] ?? n)) : numbers;
  const middle = (Math.max(...steps.slice(1)) + Math.min(...steps.slice(1))) / 2;
  return steps.map((step) => (step > middle ? "high" : "low"));
}
