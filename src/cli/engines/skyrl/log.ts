// What SkyRL's log says that a person waits for or has to act on.

/** The address that it serves at. */
export const addressIn = (line: string): string | undefined => /Uvicorn running on (http:\/\/[\w.:]+)/.exec(line)?.[1];

/** Requests are answered before this, and nothing is done about them. */
export const isReady = (line: string): boolean => line.includes("Starting background engine");

/** Another sampler was written to the disk. */
export const savesSampler = (line: string): boolean => line.includes("(save_weights_for_sampler) took");

/** What it has begun to do. */
export function stageIn(line: string): string | undefined {
  if (line.includes("Started background engine")) return "starting JAX";
  if (/Using local model|Initializ(ed|ing) base model/.test(line)) return "loading the model";
  const compiling = /JIT compiling for (\w+) seq_len=(\d+) in progress/.exec(line);
  return compiling
    ? `compiling what ${compiling[1] === "train" ? "trains" : "samples"} ${compiling[2]} tokens`
    : undefined;
}

/** A compilation that took long. */
export function compiledIn(line: string): string | undefined {
  const [, what, length, seconds] = /JIT compilation for (\w+) seq_len=(\d+) took ([\d.]+)s/.exec(line) ?? [];
  return Number(seconds) >= 5
    ? `compiled what ${what === "train" ? "trains" : "samples"} ${length} tokens, in ${Math.round(Number(seconds))} s`
    : undefined;
}

interface Cause {
  seen: RegExp;
  what: string;
  next: string;
}

const causes: readonly Cause[] = [
  {
    seen: /RESOURCE_EXHAUSTED|CUDA_ERROR_OUT_OF_MEMORY|OutOfMemory|CUDA out of memory/,
    what: "the GPU's memory is used up",
    next: 'lower max_tokens, or what is computed at once: engine_config={"sample_max_num_sequences":32,"train_micro_batch_size":2,"gradient_checkpointing":true}',
  },
  {
    seen: /Maximum number of LoRA adapters/,
    what: "there is no room for another adapter",
    next: 'end other commands on it, or engine_config={"max_lora_adapters":16}',
  },
  { seen: /No space left on device/, what: "the disk is full", next: "free some space and resume the run" },
  {
    seen: /CUDA driver version is insufficient|CUDA_ERROR_NO_DEVICE|Unable to initialize backend 'cuda'|no supported devices found/,
    what: "the NVIDIA driver cannot be used",
    next: "see what nvidia-smi says, and update the driver",
  },
  {
    seen: /None of the architectures .* is currently supported/,
    what: "SkyRL does not compute this architecture",
    next: "choose a Qwen3 or Llama model",
  },
  {
    seen: /ModuleNotFoundError|ImportError/,
    what: "the installation is not whole",
    next: "remove it with `engines remove=skyrl`, and start again",
  },
];

/** What a line says is wrong, and what to do about it. */
export const causeIn = (line: string): Omit<Cause, "seen"> | undefined => causes.find(({ seen }) => seen.test(line));
