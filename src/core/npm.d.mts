/** Runs npm to its end, or until `limitMs`. `code` is null when it was stopped, and -1 when there is no npm. */
export function runNpm(
  args: readonly string[],
  options?: { cwd?: string; limitMs?: number; show?: boolean },
): Promise<{ code: number | null; stdout: string; stderr: string }>;

/** Why npm's registry cannot be reached, or undefined when it answers. Takes 15 seconds at most. */
export function registryProblem(cwd?: string): Promise<string | undefined>;
