// The few statistics an evaluation needs: rates with intervals, pass@k, and a paired comparison of two evaluations.

/** A 95% Wilson score interval for `successes` out of `trials`; [0, 1] when nothing was tried. */
export function wilsonInterval(successes: number, trials: number): [low: number, high: number] {
  if (trials === 0) return [0, 1];
  const z = 1.959963984540054;
  const rate = successes / trials;
  const spread = (z * z) / trials;
  const center = (rate + spread / 2) / (1 + spread);
  const half = (z * Math.sqrt((rate * (1 - rate)) / trials + spread / (4 * trials))) / (1 + spread);
  return [Math.max(0, center - half), Math.min(1, center + half)];
}

/** The chance that at least one of k samples is right, estimated without bias from n samples of which c were right. */
export function passAtK(n: number, c: number, k: number): number {
  if (n - c < k) return 1;
  let allWrong = 1;
  for (let i = n - c + 1; i <= n; i++) allWrong *= 1 - k / i;
  return 1 - allWrong;
}

/** The two-sided p-value of McNemar's exact test: `gained` pairs turned right, `lost` pairs turned wrong. */
export function mcnemarExact(gained: number, lost: number): number {
  const changed = gained + lost;
  if (changed === 0) return 1;
  // Binomial(changed, 1/2): sum the tail in log space, so that large counts do not underflow.
  let logTerm = -changed * Math.LN2;
  let tail = 0;
  for (let i = 0; i <= Math.min(gained, lost); i++) {
    tail += Math.exp(logTerm);
    logTerm += Math.log((changed - i) / (i + 1));
  }
  return Math.min(1, 2 * tail);
}

/** The q-quantile (0…1) of values, by the nearest rank; undefined for none. */
export function quantile(values: readonly number[], q: number): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))];
}

/** The mean, or undefined for no values: missing is not zero. */
export function mean(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
