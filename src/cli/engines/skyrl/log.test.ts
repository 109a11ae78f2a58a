import { expect, test } from "vitest";
import { addressIn, causeIn, compiledIn, isReady, stageIn } from "./log.ts";

const at = "2026-11-19 15:27:37,080 - INFO - ";

test("the log says where it serves, what it does, and when it computes", () => {
  const lines = [
    `${at}skyrl: Started background engine with PID 24137: uv run --extra tinker`,
    `${at}uvicorn.error: Uvicorn running on http://127.0.0.1:37795 (Press CTRL+C to quit)`,
    `${at}skyrl: Using local model at nano-coder`,
    `${at}skyrl: Starting background engine...`,
    `${at}skyrl: JIT compiling for sample seq_len=192 in progress...`,
  ];
  expect(lines.map(addressIn)).toEqual([undefined, "http://127.0.0.1:37795", undefined, undefined, undefined]);
  expect(lines.map(isReady)).toEqual([false, false, false, true, false]);
  expect(lines.map(stageIn)).toEqual([
    "starting JAX",
    undefined,
    "loading the model",
    undefined,
    "compiling what samples 192 tokens",
  ]);
});

test("a compilation is told once it took long", () => {
  expect(compiledIn(`${at}skyrl: JIT compilation for train seq_len=512 took 61.27s`)).toBe(
    "compiled what trains 512 tokens, in 61 s",
  );
  expect(compiledIn(`${at}skyrl: JIT compilation for train seq_len=512 took 0.27s`)).toBeUndefined();
});

test.each([
  [
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate",
    "memory is used up",
  ],
  ["ValueError: Maximum number of LoRA adapters (8) reached", "another adapter"],
  ["OSError: [Errno 28] No space left on device", "disk is full"],
  ["RuntimeError: Unable to initialize backend 'cuda': INTERNAL", "driver cannot be used"],
  ["ValueError: None of the architectures ['Qwen2ForCausalLM'] is currently supported.", "architecture"],
])("a known cause is said with what to do: %s", (line, what) => {
  const cause = causeIn(line);
  expect(cause?.what).toContain(what);
  expect(cause?.next).not.toBe("");
});

test("a line that says nothing wrong has no cause", () => {
  expect(causeIn(`${at}skyrl: Created LoRA model model_1234`)).toBeUndefined();
});
