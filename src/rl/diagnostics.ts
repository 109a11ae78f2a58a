// How far the policy that sampled (q) is from the policy that was trained (p), from the logprobs both gave the same tokens.

/** Pairs of logprobs over all completion tokens of a step. */
export class PolicyDrift {
  #tokens = 0;
  #difference = 0;
  #squared = 0;
  #entropy = 0;
  #k3 = 0;
  #ratio = 0;
  #ratioSquared = 0;
  #ratioMax = 0;
  #outside = 0;
  #certain = 0;

  /** Adds one sequence: the sampler's and the trainer's logprobs of its completion tokens, aligned. */
  add(sampled: ArrayLike<number>, trained: ArrayLike<number>): void {
    for (let index = 0; index < sampled.length; index++) {
      const q = sampled[index]!;
      const p = trained[index]!;
      const ratio = Math.exp(p - q);
      this.#tokens++;
      this.#difference += q - p;
      this.#squared += (q - p) ** 2;
      this.#entropy -= q;
      this.#k3 += ratio - 1 - (p - q);
      this.#ratio += ratio;
      this.#ratioSquared += ratio * ratio;
      this.#ratioMax = Math.max(this.#ratioMax, ratio);
      if (ratio < 0.8 || ratio > 1.2) this.#outside++;
      if (q >= -1e-9) this.#certain++;
    }
  }

  get tokens(): number {
    return this.#tokens;
  }

  /** Empty when nothing was added. */
  metrics(): Record<string, number> {
    const n = this.#tokens;
    if (n === 0) return {};
    return {
      "optim/kl_sample_train_v1": this.#difference / n,
      "optim/kl_sample_train_v2": (0.5 * this.#squared) / n,
      "optim/kl_k3": this.#k3 / n,
      "optim/entropy": this.#entropy / n,
      "optim/ratio_mean": this.#ratio / n,
      "optim/ratio_max": this.#ratioMax,
      "optim/ratio_frac_outside_0.8_1.2": this.#outside / n,
      "optim/effective_sample_size": this.#ratio ** 2 / (n * this.#ratioSquared),
      "optim/frac_q_zero": this.#certain / n,
    };
  }
}
