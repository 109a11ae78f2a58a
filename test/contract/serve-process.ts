// Starts `./whet serve` the way users do, as a process of its own, and stops it again.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const launcher = fileURLToPath(new URL("../../whet", import.meta.url));

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
export async function startServe(
  args: readonly string[],
  apiKey = "tml-local",
  wrapper: readonly string[] = [],
): Promise<ServeProcess> {
  // Its standard input is ours: should this process be killed, the server ends by itself.
  const own = ["port=0", `api_key=${apiKey}`, "exit_with_parent=true"];
  const [program, ...rest] = [...wrapper, launcher, "serve", ...own, ...args];
  const child = spawn(program!, rest, { stdio: ["pipe", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const exited = once(child, "exit") as Promise<[number | null]>;
  const baseUrl = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const url = /^whetstone: serving the Tinker API at (http:\/\/127\.0\.0\.1:\d+)$/.exec(line)?.[1];
      if (url) resolve(url);
      else reject(new Error(`unexpected on stdout: ${line}`));
    });
    exited.then(([code]) => reject(new Error(`./whet serve ended with ${code}: ${errors}`)), reject);
  });
  return {
    baseUrl,
    apiKey,
    child,
    errors: () => errors,
    async close() {
      // With exit_with_parent the end of its standard input is what counts.
      child.stdin.end();
      child.kill("SIGTERM");
      const [code] = await exited;
      return code;
    },
  };
}
