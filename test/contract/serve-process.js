// Starts `./whet serve` the way users do, as a process of its own, and stops it again.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const launcher = fileURLToPath(new URL("../../whet", import.meta.url));
/** `args` as on the command line, e.g. `engine=simulated`. `port=0` and a key are added. `wrapper`: a command to run it under. */
export async function startServe(args, apiKey = "tml-local", wrapper = []) {
  // Its standard input is ours: should this process be killed, the server ends by itself.
  const own = ["port=0", `api_key=${apiKey}`, "exit_with_parent=true"];
  const [program, ...rest] = [...wrapper, launcher, "serve", ...own, ...args];
  const child = spawn(program, rest, { stdio: ["pipe", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (chunk) => {
    errors += chunk.toString();
  });
  const exited = once(child, "exit");
  const baseUrl = await new Promise((resolve, reject) => {
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
      child.kill("SIGTERM");
      const [code] = await exited;
      return code;
    },
  };
}
