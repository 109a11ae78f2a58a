// A small seeded generator (xoshiro128**, seeded through splitmix32): the same seed gives the same numbers on every machine.

/** A stream of pseudo-random numbers. Not for secrets. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  /** `seed` is any mix of numbers and strings; two different seeds give unrelated streams. */
  constructor(...seed: (number | string)[]) {
    let state = hashWords(seed.join("\u0000"));
    const next = () => {
      state = (state + 0x9e3779b9) | 0;
      let word = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
      word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
      return (word ^ (word >>> 15)) >>> 0;
    };
    this.#a = next();
    this.#b = next();
    this.#c = next();
    this.#d = next() | 1;
  }

  /** An unsigned 32-bit integer. */
  uint32(): number {
    const scrambled = Math.imul(this.#b, 5);
    const result = Math.imul((scrambled << 7) | (scrambled >>> 25), 9) >>> 0;
    const shifted = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= shifted;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }

  /** A number in [0, 1), with 53 random bits. */
  float(): number {
    return ((this.uint32() >>> 5) * 0x4000000 + (this.uint32() >>> 6)) / 0x20000000000000;
  }

  /** An integer in [0, limit). */
  integer(limit: number): number {
    return Math.floor(this.float() * limit);
  }

  /** A number of the normal distribution with mean 0 and deviation 1. */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.float())) * Math.cos(2 * Math.PI * this.float());
  }
}

/** FNV-1a over the UTF-16 units of a text. */
function hashWords(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash;
}
