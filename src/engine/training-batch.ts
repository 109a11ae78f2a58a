// Checks what a client sent to train on and brings it into one form. Everything wrong with a batch is found here, before any
// computation starts.
import type { LossTensor, TrainingBatch, TrainingDatum } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { type Loss, losses } from "./losses.ts";
import type { Qwen3Config } from "./model-types.ts";

/** A training sequence whose inputs are known to fit. */
export interface CheckedDatum {
  tokens: Int32Array;
  /** Targets per position; 1 unless soft targets were given. */
  slots: number;
  /** [position, slot] */
  targets: Int32Array;
  /** The shape that the log-probabilities are returned in. */
  shape: readonly number[];
  /** In the order of the loss's inputs, each [position, slot]. */
  inputs: Float32Array[];
}

/** The loss's settings, with defaults. */
export function checkLossConfig(batch: TrainingBatch): Record<string, number> {
  const loss = lossOf(batch);
  for (const [name, value] of Object.entries(batch.lossConfig)) {
    if (!(name in loss.config)) {
      const known = Object.keys(loss.config).join(", ") || "no settings";
      throw new EngineError("engine/loss-config", `Loss "${batch.loss}" has no setting "${name}". It takes ${known}.`);
    }
    if (!Number.isFinite(value)) {
      throw new EngineError(
        "engine/loss-config",
        `Setting "${name}" of loss "${batch.loss}" is ${value}. Give a finite number.`,
      );
    }
  }
  return { ...loss.config, ...batch.lossConfig };
}

export function checkBatch(config: Qwen3Config, batch: TrainingBatch): CheckedDatum[] {
  const loss = lossOf(batch);
  if (batch.data.length === 0) {
    throw new EngineError("engine/empty-batch", "The batch has no data. Send at least one datum.");
  }
  return batch.data.map((datum, index) => checkDatum(config, batch, loss, datum, `Datum ${index}`));
}

function lossOf(batch: TrainingBatch): Loss {
  const loss = losses[batch.loss] as Loss | undefined;
  if (loss) return loss;
  throw new EngineError(
    "engine/unknown-loss",
    `There is no loss "${batch.loss}". Use one of ${Object.keys(losses).join(", ")}.`,
  );
}

function checkDatum(
  config: Qwen3Config,
  batch: TrainingBatch,
  loss: Loss,
  datum: TrainingDatum,
  where: string,
): CheckedDatum {
  const { tokens, lossInputs } = datum;
  checkTokens(config, tokens, where);
  const wanted = ["target_tokens", ...loss.inputs];
  for (const name of Object.keys(lossInputs)) {
    if (!wanted.includes(name)) {
      throw inputError(
        `${where} has the loss input "${name}", which "${batch.loss}" does not take. It takes ${wanted.join(", ")}.`,
      );
    }
  }
  const targets = lossInputs["target_tokens"];
  if (!targets) throw inputError(`${where} has no "target_tokens". Give one target for every position.`);
  const soft = targets.shape.length === 2;
  const slots = soft ? targets.shape[1]! : 1;
  if (soft && batch.loss !== "cross_entropy") {
    throw inputError(
      `${where} has targets of shape [${targets.shape}]. Loss "${batch.loss}" takes one target per position.`,
    );
  }
  const fits = (tensor: LossTensor): boolean =>
    tensor.shape.join() === targets.shape.join() && tensor.data.length === tokens.length * slots;
  if (
    targets.shape.length < 1 ||
    targets.shape.length > 2 ||
    targets.shape[0] !== tokens.length ||
    slots < 1 ||
    !fits(targets)
  ) {
    throw inputError(
      `${where} has ${tokens.length} tokens and "target_tokens" of shape [${targets.shape}] with ${targets.data.length} values. ` +
        "Give one target (or one row of K targets) per token.",
    );
  }
  const ids = Int32Array.from(targets.data);
  for (const [position, id] of ids.entries()) {
    if (id !== targets.data[position] || id < 0 || id >= config.vocabSize) {
      throw new EngineError(
        "engine/token-range",
        `${where} has the target ${targets.data[position]} at index ${position}. Token ids run from 0 to ${config.vocabSize - 1}.`,
      );
    }
  }
  const inputs = loss.inputs.map((name) => {
    const tensor = lossInputs[name];
    if (!tensor) throw inputError(`${where} has no "${name}". Loss "${batch.loss}" takes ${wanted.join(", ")}.`);
    if (!fits(tensor)) {
      throw inputError(
        `${where} has "${name}" of shape [${tensor.shape}] with ${tensor.data.length} values, and targets of shape [${targets.shape}]. ` +
          "Give both the same shape.",
      );
    }
    const bad = tensor.data.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0)
      throw inputError(`${where} has ${tensor.data[bad]} in "${name}" at index ${bad}. Give finite numbers.`);
    return tensor.data instanceof Float32Array ? tensor.data : Float32Array.from(tensor.data);
  });
  return { tokens, slots, targets: ids, shape: targets.shape, inputs };
}

/** Refuses tokens that the model does not have, and sequences longer than it can take. */
export function checkTokens(config: Qwen3Config, tokens: Int32Array, where: string): void {
  if (tokens.length === 0)
    throw new EngineError("engine/sequence-length", `${where} has no tokens. Give at least one.`);
  if (tokens.length > config.maxPositions) {
    throw new EngineError(
      "engine/sequence-length",
      `${where} has ${tokens.length} tokens; the model takes at most ${config.maxPositions}. Shorten the sequence.`,
    );
  }
  const bad = tokens.findIndex((token) => token < 0 || token >= config.vocabSize);
  if (bad >= 0) {
    throw new EngineError(
      "engine/token-range",
      `${where} has the token ${tokens[bad]} at position ${bad}. Token ids run from 0 to ${config.vocabSize - 1}.`,
    );
  }
}

function inputError(message: string): EngineError {
  return new EngineError("engine/loss-input", message);
}
