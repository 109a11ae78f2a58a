// The start of engine=skyrl: says what fits this machine, installs SkyRL, fetches the model, and starts the server for one command.

import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { ConfigError, WhetstoneError } from "../../../core/errors.ts";
import { freeBytes } from "../../../core/files.ts";
import { takeLock } from "../../../core/lock-file.ts";
import { isGguf } from "../../../gguf/index.ts";
import { presetConfig } from "../../../rl/config.ts";
import { completionsPerStep } from "../../../rl/sizes.ts";
import type { Logger } from "../../../runs/log.ts";
import { findInterpreter } from "../../../sandbox/interpreter.ts";
import type { EngineStart, RunningEngine } from "../engine.ts";
import { describeGpu, type Gpu, gpus, memory, size } from "../machine.ts";
import { fetchModel } from "../model.ts";
import { configIn, dtypeOf, type Fit, fitInto, sizesOf } from "./fit.ts";
import { skyrlPython, skyrlVersion } from "./install.ts";
import { startSkyrl } from "./server.ts";

/** What SkyRL's JAX backend computes. */
const computed = /^(Llama|Llama3|Qwen3|Qwen3Moe|Qwen3_5|DeepseekV3|Glm4MoeLite)For(CausalLM|ConditionalGeneration)$/;
/** Adapters at once: the base model's, a run's, the one that samplers are tried on, one to evaluate; and as many that were not freed yet. */
const adapters = 8;
/** CUDA 13, which the locked versions are built for, wants this driver. */
const oldestDriver = 580;

/** Starts it for one command. */
export async function start(options: EngineStart): Promise<RunningEngine> {
  const { model, config, stateDir, logger, signal } = options;
  mkdirSync(stateDir, { recursive: true });
  const release = hold(stateDir);
  try {
    const gpu = await lookAtMachine(logger);
    let fit: Fit | undefined;
    refuseGguf(model);
    const check = (place: string) => {
      fit = sayFit(place, options, gpu);
    };
    const folder = await fetchModel(model, check, signal);
    const python = config.engine_python
      ? (await findInterpreter(config.engine_python)).executable
      : await skyrlPython(logger, signal);
    const running = await startSkyrl({
      ...options,
      python,
      platform: gpu ? "cuda" : "cpu",
      // SkyRL takes a model's name for a folder where there is one of that name in its working folder.
      workFolder: placeModel(stateDir, model, folder),
      backendConfig: { ...backendConfig(config, fit), ...config.engine_config },
      exact: dtypeOf(folder) === "float32",
    });
    return { ...running, identity: `skyrl-${skyrlVersion}`, close: () => running.close().finally(release) };
  } catch (error) {
    release();
    throw error;
  }
}

async function lookAtMachine(logger: Logger): Promise<Gpu | undefined> {
  const [gpu, ...others] = await gpus();
  const more = others.length > 0 ? `; ${others.length} more, used as engine_config= says` : "";
  logger.info(
    `engine   ${gpu ? describeGpu(gpu) + more : `no NVIDIA GPU found: SkyRL computes on the processor, with ${size(memory())} of memory`}`,
  );
  if (gpu && Number.parseInt(gpu.driver, 10) < oldestDriver)
    throw new WhetstoneError(
      "cli/gpu-driver",
      `The NVIDIA driver is ${gpu.driver}, and SkyRL's CUDA 13 wants ${oldestDriver} or later. Update the driver; or engine=embedded computes small models on the processor.`,
    );
  return gpu;
}

/** Only one command at a time may use a run's database and checkpoints. */
function hold(stateDir: string): () => void {
  const lock = takeLock(join(stateDir, "lock"));
  if ("release" in lock) return lock.release;
  throw new WhetstoneError(
    "cli/engine-busy",
    `The engine of ${dirname(stateDir)} is in use by process ${lock.holder}, and what samples beside training would change what is trained. Wait until it has ended.`,
  );
}

function refuseGguf(model: string): void {
  if (isGguf(model))
    throw new ConfigError(
      "config/bad-value",
      `model_name=${model}: SkyRL reads safetensors alone. Name the model that the file was made of, or engine=embedded.`,
    );
}

/** Says what fits, before weights are fetched; refuses what does not. */
function sayFit(folder: string, { model, config, logger }: EngineStart, gpu: Gpu | undefined): Fit | undefined {
  const { architectures = [] } = configIn(folder) as { architectures?: string[] };
  if (!architectures.some((name) => computed.test(name)))
    throw new WhetstoneError(
      "cli/skyrl-architecture",
      `${model} is a ${architectures.join(", ") || "model without an architecture"}, which SkyRL's JAX backend does not compute. Choose a Qwen3 or Llama model, or a server that has this one.`,
    );
  const sizes = sizesOf(folder);
  if (!sizes) {
    logger.info(`engine   what ${model} takes is not known here; engine_config= sets what is computed at once`);
    return undefined;
  }
  const settings = { ...presetConfig("small"), ...config };
  const room = gpu?.freeBytes ?? memory();
  const window = Math.min(settings.context_window, settings.max_tokens + promptAllowance);
  const fit = fitInto(room, sizes, {
    window,
    rank: settings.lora_rank,
    adapters,
    answers: completionsPerStep(settings),
    group: settings.completions_per_prompt,
  });
  const takes = `${billions(sizes.parameters)} parameters, ${size(fit.fixedBytes)} with adapters`;
  if (fit.sampled === 0 || fit.trained === 0)
    throw new WhetstoneError(
      "cli/engine-too-large",
      `${model} does not fit: ${takes}, and answers of ${window} tokens beside them, into ${size(room)} of ${gpu ? "free GPU memory" : "memory"}. ` +
        "Choose a smaller model, lower max_tokens, or free memory that other programs hold.",
    );
  logger.info(
    `engine   fits: ${takes}; ${fit.sampled} answers of ${window} tokens are sampled at once, ${fit.trained} trained on${fit.checkpointing ? ", with layers computed twice" : ""}`,
  );
  const toFetch = sizes.parameters * sizes.width;
  const disk = freeBytes(folder);
  if (disk < toFetch)
    throw new WhetstoneError(
      "cli/disk-too-small",
      `The weights of ${model} take ${size(toFetch)}, and the disk of ${folder} has ${size(disk)} free. Free some space, or set WHETSTONE_CACHE to a folder elsewhere.`,
    );
  return fit;
}

const billions = (count: number) =>
  count < 1e9 ? `${Math.round(count / 1e6)} million` : `${(count / 1e9).toFixed(1)} billion`;

/** Longer prompts are rare; SkyRL makes room for what comes. */
const promptAllowance = 1024;

function backendConfig(config: EngineStart["config"], fit: Fit | undefined): Record<string, unknown> {
  return {
    max_lora_adapters: adapters,
    max_lora_rank: config.lora_rank ?? 32,
    sample_max_num_sequences: fit?.sampled ?? 32,
    train_micro_batch_size: fit?.trained ?? 1,
    ...(fit && !fit.checkpointing ? {} : { gradient_checkpointing: true }),
  };
}

function placeModel(stateDir: string, model: string, folder: string): string {
  const workFolder = join(stateDir, "model");
  mkdirSync(workFolder, { recursive: true });
  if (!isAbsolute(model)) {
    const place = join(workFolder, model);
    mkdirSync(dirname(place), { recursive: true });
    rmSync(place, { force: true });
    symlinkSync(folder, place);
  }
  return workFolder;
}
