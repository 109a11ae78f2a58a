import { type ChildProcess } from "node:child_process";
export interface ServeProcess {
  baseUrl: string;
  apiKey: string;
  child: ChildProcess;
  /** Everything it wrote to stderr so far. */
  errors(): string;
  /** Asks it to stop; resolves to its exit code. */
  close(): Promise<number | null>;
}
/** `args` as on the command line, e.g. `engine=simulated`. `port=0` and a key are added. `wrapper`: a command to run it under. */
export declare function startServe(
  args: readonly string[],
  apiKey?: string,
  wrapper?: readonly string[],
): Promise<ServeProcess>;
