// A graph compiled by ONNX Runtime. Values are typed arrays with a shape; what is fed is read in place, never copied, so large
// arrays (weights, caches) are best wrapped once and fed again. Outputs are fresh buffers: return little.
import type { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node";
import { messageOf } from "../core/errors.ts";
import { GraphError } from "./errors.ts";
import { bindDimensions, graphInputs, inputName } from "./inputs.ts";
import { toOnnx } from "./onnx-graph.ts";
import { onnxRuntime } from "./onnx-runtime.ts";
import type { Tensor } from "./tensor.ts";

/** A value that can be fed or came out. The array behind a fed value must not change while a run is under way. */
export type Value = OrtTensor;

/**
 * How a session's threads wait for their part of the next operation. A short while of spinning spares them being put to sleep and
 * woken between operations that follow each other at once. Longer, or after a run has ended, it would take the processor from other
 * sessions and from whatever else the machine does.
 */
const threadWaiting = { intra_op: { allow_spinning: "1", spin_duration_us: "20" }, force_spinning_stop: "1" };

/** Wraps a typed array as a value, in place. */
export function value(data: Float32Array | Int32Array | Uint8Array, shape: readonly number[]): Value {
  const { Tensor } = onnxRuntime();
  if (data instanceof Float32Array) return new Tensor("float32", data, shape);
  return data instanceof Int32Array ? new Tensor("int32", data, shape) : new Tensor("bool", data, shape);
}

/** The floats of a value that came out of a run. */
export function floats(output: Value): Float32Array {
  return output.data as Float32Array;
}

export class Session {
  readonly #session: InferenceSession;
  readonly #inputs: readonly Tensor[];
  readonly #inputNames: readonly string[];
  readonly #outputs: readonly string[];
  /** Inputs whose shape has no names, such as weights. What was last fed to them, fed again, need not be checked again. */
  readonly #fixed: ReadonlySet<string>;
  readonly #checked = new Map<string, Value>();

  private constructor(session: InferenceSession, inputs: readonly Tensor[], outputs: readonly string[]) {
    this.#session = session;
    this.#inputs = inputs;
    this.#outputs = outputs;
    this.#inputNames = inputs.map(inputName);
    this.#fixed = new Set(
      inputs.filter(({ shape }) => shape.every((dim) => typeof dim === "number")).map((fixed) => inputName(fixed)),
    );
  }

  /** Compiles the graph that computes `outputs`, with a pool of so many threads of its own. */
  static async compile(outputs: Readonly<Record<string, Tensor>>, threads: number): Promise<Session> {
    const model = toOnnx(outputs);
    try {
      const session = await onnxRuntime().InferenceSession.create(model, {
        executionProviders: ["cpu"],
        intraOpNumThreads: threads,
        interOpNumThreads: 1,
        executionMode: "sequential",
        graphOptimizationLevel: "all",
        enableMemPattern: false, // plans are kept per shape, and shapes keep changing
        extra: { session: threadWaiting },
      });
      return new Session(session, graphInputs(Object.values(outputs)), Object.keys(outputs));
    } catch (error) {
      throw new GraphError("graph/compile", `ONNX Runtime refused the graph: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Runs the graph for all of its outputs, or for some. Blocks the calling thread while it computes. */
  async run(
    feeds: Readonly<Record<string, Value>>,
    wanted: readonly string[] = this.#outputs,
  ): Promise<Record<string, Value>> {
    const used: Record<string, Value> = {};
    const shapes: Record<string, { shape: readonly number[] }> = {};
    const unchecked: Tensor[] = [];
    for (const [index, name] of this.#inputNames.entries()) {
      const feed = feeds[name];
      if (feed) {
        used[name] = feed;
        if (this.#checked.get(name) === feed) continue;
        shapes[name] = { shape: feed.dims };
      }
      unchecked.push(this.#inputs[index]!); // one that is missing is reported below
    }
    bindDimensions(unchecked, shapes);
    for (const input of unchecked) {
      const name = inputName(input);
      if (this.#fixed.has(name)) this.#checked.set(name, used[name]!);
    }
    try {
      return await this.#session.run(used, wanted);
    } catch (error) {
      throw new GraphError("graph/run", `ONNX Runtime failed while running a graph: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  async release(): Promise<void> {
    await this.#session.release();
  }
}

/** Sessions by a key, compiled when they are first asked for. */
export class Sessions {
  readonly #sessions = new Map<string, Promise<Session>>();

  get(key: string, compile: () => Promise<Session>): Promise<Session> {
    let session = this.#sessions.get(key);
    if (!session) {
      session = compile();
      this.#sessions.set(key, session);
      session.catch(() => this.#sessions.delete(key)); // the caller sees the error; the next call tries again
    }
    return session;
  }

  async release(): Promise<void> {
    const sessions = await Promise.all(this.#sessions.values());
    this.#sessions.clear();
    await Promise.all(sessions.map((session) => session.release()));
  }
}
