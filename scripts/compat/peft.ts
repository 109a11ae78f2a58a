// An adapter trained here, downloaded with the official SDK's command line and loaded in transformers and peft: its log-probabilities
// must be the server's to 1e-4.
//     node --import ./src/core/ts-loader.mjs scripts/compat/peft.ts
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServe } from "../../test/contract/serve-process.ts";
import { cookbookPackages, environment, report, root, run } from "./common.ts";

const python = environment("cookbook", cookbookPackages);
const folder = mkdtempSync(join(tmpdir(), "whetstone-peft-"));
const server = await startServe([`state_dir=${join(folder, "state")}`]);
const env = { TINKER_BASE_URL: server.baseUrl, TINKER_API_KEY: server.apiKey, HF_HUB_OFFLINE: "1" };
const script = join(root, "scripts", "compat", "peft_check.py");
const done = await run(python, [script, join(root, "models", "nano-coder"), join(folder, "download")], {
  env,
  quiet: true,
});
await server.close();
const found =
  done.output
    .trim()
    .split("\n")
    .findLast((line) => line.startsWith("{")) ?? done.output.slice(-2000);
report("An adapter from ./whet serve in transformers and peft", [
  { what: "log-probabilities to 1e-4", passed: done.code === 0, found },
]);
