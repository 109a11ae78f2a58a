// The shapes of Sandbox Fusion's HTTP API that Whetstone uses, as they are on the wire.

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

export interface CommandRunResult {
  status: "Finished" | "Error" | "TimeLimitExceeded";
  execution_time: number | null;
  /** Negative signal number when killed; null on a timeout. */
  return_code: number | null;
  stdout: string | null;
  stderr: string | null;
}

export interface RunCodeResponse {
  status: "Success" | "Failed" | "SandboxError";
  message: string;
  compile_result: CommandRunResult | null;
  run_result: CommandRunResult | null;
  executor_pod_name: string | null;
  /** Path to base64. */
  files: Record<string, string>;
}

/** Every language that Sandbox Fusion's enum has. */
export const fusionLanguages: readonly string[] = (
  "python cpp nodejs go go_test java php csharp bash typescript sql rust cuda lua R perl D_ut ruby scala julia pytest junit " +
  "kotlin_script jest verilog python_gpu lean swift racket"
).split(" ");
