// Chooses a token from a distribution: greedy, or by chance after top-k and top-p. The draw depends on the row alone, so a sample
// with a seed is the same in any batch.
import type { Random } from "../core/random.ts";
import type { DrawSettings } from "../protocol/sampling.ts";

/** The index of the largest value; the first of equal ones. */
export function argmax(values: Float32Array): number {
  let best = 0;
  for (let index = 1; index < values.length; index++) if (values[index]! > values[best]!) best = index;
  return best;
}

/** Log-probabilities at temperature 1 turned into (unnormalised) probabilities at another temperature. */
export function tempered(logprobs: Float32Array, temperature: number): Float32Array {
  return logprobs.map((logprob) => Math.exp(logprob / temperature));
}

/**
 * Draws a token. `probs` are proportional to the probabilities at the sample's temperature. Top-k keeps the k most likely tokens;
 * of what is left, top-p keeps the fewest most likely ones whose share reaches p. Of equally likely tokens the lower id counts as
 * more likely.
 */
export function draw(probs: Float32Array, settings: DrawSettings, random: Random): number {
  const limitsK = settings.topK > 0 && settings.topK < probs.length;
  const point = random.float();
  if (!limitsK && settings.topP >= 1) return drawFrom(probs, point);
  const kept = nucleus(limitsK ? mostLikely(probs, settings.topK) : probs.keys(), probs, settings.topP);
  return kept[
    drawFrom(
      Float32Array.from(kept, (token) => probs[token]!),
      point,
    )
  ]!;
}

/** The index at which the running sum passes `point` of the total. Whole chunks are stepped over. */
function drawFrom(probs: Float32Array, point: number): number {
  const chunks = Math.ceil(probs.length / chunkSize);
  if (chunkSums.length < chunks) chunkSums = new Float64Array(2 * chunks);
  let total = 0;
  for (let chunk = 0; chunk < chunks; chunk++) total += chunkSums[chunk] = sumOfChunk(probs, chunk * chunkSize);
  let left = point * total;
  let chunk = 0;
  while (chunk < chunks - 1 && left >= chunkSums[chunk]!) left -= chunkSums[chunk++]!;
  let last = 0;
  for (let index = chunk * chunkSize; index < probs.length; index++) {
    const probability = probs[index]!;
    if (probability <= 0) continue;
    left -= probability;
    last = index;
    if (left < 0) return index;
  }
  return last; // rounding left a crumb behind the last token
}

const chunkSize = 32;
let chunkSums = new Float64Array(0);

/** Four sums side by side: an addition need not wait for the one before it. */
function sumOfChunk(probs: Float32Array, start: number): number {
  const end = Math.min(start + chunkSize, probs.length);
  let [a, b, c, d] = [0, 0, 0, 0];
  let index = start;
  for (; index + 3 < end; index += 4) {
    a += probs[index]!;
    b += probs[index + 1]!;
    c += probs[index + 2]!;
    d += probs[index + 3]!;
  }
  for (; index < end; index++) a += probs[index]!;
  return a + b + (c + d);
}

function mostLikely(probs: Float32Array, count: number): number[] {
  const threshold = probs.slice().sort()[probs.length - count]!;
  const above: number[] = [];
  const equal: number[] = [];
  for (let token = 0; token < probs.length; token++) {
    if (probs[token]! > threshold) above.push(token);
    else if (probs[token] === threshold) equal.push(token);
  }
  return [...above, ...equal.slice(0, count - above.length)];
}

function nucleus(tokens: Iterable<number>, probs: Float32Array, topP: number): number[] {
  const candidates = [...tokens];
  if (topP >= 1) return candidates.sort((a, b) => a - b);
  const total = candidates.reduce((partial, token) => partial + probs[token]!, 0);
  // Tokens rarer than this together hold less than what top-p leaves out, so none of them can be needed.
  const negligible = ((1 - topP) * total) / candidates.length;
  const ordered = candidates
    .filter((token) => probs[token]! >= negligible)
    .sort((a, b) => probs[b]! - probs[a]! || a - b);
  let share = 0;
  let kept = 0;
  while (kept < ordered.length && (kept === 0 || share < topP * total)) share += probs[ordered[kept++]!]!;
  return ordered.slice(0, kept).sort((a, b) => a - b);
}
