// What one sampler has computed of prompts: keys and values in blocks of `blockSize` tokens, in a tree by the tokens that lead to
// them. A prompt that starts like an earlier one starts from its blocks. Blocks begin at fixed positions, so what is
// reused is bit for bit what would be computed again.
import { blockSize } from "./decoder.ts";
import type { KvBlock } from "./kv-slab.ts";

/** One block of a prompt: full, or the last tokens of a prompt, padded. */
export interface PromptBlock extends KvBlock {
  /** Log-probabilities of the token after the block's last one, where a prompt ended there. */
  nextLogprobs: Float32Array | undefined;
}

interface CacheNode {
  block: PromptBlock | undefined;
  children: Map<string, CacheNode>;
  parent: CacheNode | undefined;
  key: string;
  usedAt: number;
}

/** The tokens of each block of a prompt. */
export function blocksOf(prompt: Int32Array): Int32Array[] {
  const count = Math.max(1, Math.ceil(prompt.length / blockSize));
  return Array.from({ length: count }, (_, index) => prompt.subarray(index * blockSize, (index + 1) * blockSize));
}

export class PromptCache {
  readonly #limitBytes: number;
  readonly #root: CacheNode = node(undefined, "");
  #bytes = 0;
  #clock = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** The leading blocks of `prompt` that are there; the last one only if what follows it is known too. */
  find(prompt: Int32Array): PromptBlock[] {
    const blocks = blocksOf(prompt);
    const found: PromptBlock[] = [];
    let at: CacheNode | undefined = this.#root;
    for (const [index, tokens] of blocks.entries()) {
      at = at.children.get(tokens.join());
      if (!at?.block || (index === blocks.length - 1 && !at.block.nextLogprobs)) break;
      at.usedAt = ++this.#clock;
      found.push(at.block);
    }
    return found;
  }

  /** Keeps a prompt's blocks, and drops the least recently used ones beyond the limit. */
  keep(prompt: Int32Array, blocks: readonly PromptBlock[]): void {
    let at = this.#root;
    for (const [index, tokens] of blocksOf(prompt).entries()) {
      const key = tokens.join();
      let next = at.children.get(key);
      if (!next) {
        next = node(at, key);
        at.children.set(key, next);
      }
      next.usedAt = ++this.#clock;
      if (next.block !== blocks[index]) {
        const nextLogprobs = blocks[index]!.nextLogprobs ?? next.block?.nextLogprobs;
        this.#bytes += bytesOf({ ...blocks[index]!, nextLogprobs }) - (next.block ? bytesOf(next.block) : 0);
        next.block = blocks[index]!;
        next.block.nextLogprobs = nextLogprobs;
      }
      at = next;
    }
    while (this.#bytes > this.#limitBytes && this.#dropOldest());
  }

  #dropOldest(): boolean {
    let oldest: CacheNode | undefined;
    const visit = (at: CacheNode): void => {
      for (const child of at.children.values()) visit(child);
      if (at.children.size === 0 && at.parent && (!oldest || at.usedAt < oldest.usedAt)) oldest = at;
    };
    visit(this.#root);
    if (!oldest) return false;
    this.#bytes -= oldest.block ? bytesOf(oldest.block) : 0;
    oldest.parent!.children.delete(oldest.key);
    return true;
  }
}

function node(parent: CacheNode | undefined, key: string): CacheNode {
  return { block: undefined, children: new Map(), parent, key, usedAt: 0 };
}

function bytesOf(block: PromptBlock): number {
  const arrays = [...block.keys, ...block.values, ...(block.nextLogprobs ? [block.nextLogprobs] : [])];
  return arrays.reduce((total, array) => total + array.byteLength, 0);
}
