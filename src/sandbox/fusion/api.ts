// The shapes of Sandbox Fusion's HTTP API that Whetstone uses, as they are on the wire. What comes from a server is read by a schema: it may be
// any server, in any state.
import { z } from "zod";

export interface RunCodeRequest {
  code: string;
  language: string;
  compile_timeout?: number;
  run_timeout?: number;
  memory_limit_MB?: number;
  stdin?: string | null;
  /** Path to base64. */
  files?: Record<string, string | null>;
  fetch_files?: string[];
}

const orNull = <Schema extends z.ZodType>(schema: Schema) => schema.nullish().transform((value) => value ?? null);

const commandRunResult = z.object({
  status: z.enum(["Finished", "Error", "TimeLimitExceeded"]),
  execution_time: orNull(z.number()),
  /** Negative signal number when killed; null on a timeout. */
  return_code: orNull(z.int()),
  stdout: orNull(z.string()),
  stderr: orNull(z.string()),
});
export type CommandRunResult = z.output<typeof commandRunResult>;

export const runCodeResponse = z.object({
  status: z.enum(["Success", "Failed", "SandboxError"]),
  message: z
    .string()
    .nullish()
    .transform((value) => value ?? ""),
  compile_result: orNull(commandRunResult),
  run_result: orNull(commandRunResult),
  executor_pod_name: orNull(z.string()),
  /** Path to base64. */
  files: z
    .record(z.string(), z.string())
    .nullish()
    .transform((value) => value ?? {}),
  /** What servers of Whetstone's say beyond the original: which cap ended the program, and that it was for memory. */
  limits: z.object({ stdout: z.boolean().optional(), stderr: z.boolean().optional() }).optional(),
  oom: z.boolean().optional(),
});
export type RunCodeResponse = z.output<typeof runCodeResponse>;

/** Every language that Sandbox Fusion's enum has. */
export const fusionLanguages: readonly string[] = (
  "python cpp nodejs go go_test java php csharp bash typescript sql rust cuda lua R perl D_ut ruby scala julia pytest junit " +
  "kotlin_script jest verilog python_gpu lean swift racket"
).split(" ");
