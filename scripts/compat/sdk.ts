// The contract suite by the official Python SDK, over versions: those that behave differently, and whatever is newest.
//     node --import ./src/core/ts-loader.mjs scripts/compat/sdk.ts [VERSION …]      without versions: all, and the newest
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServe } from "../../test/contract/serve-process.ts";
import { environment, report, root, run, versionOf } from "./common.ts";

/** The smallest set that covers every behaviour: JSON; protobuf; sessions' copies; the last archives; what is newest. */
const versions = process.argv.length > 2 ? process.argv.slice(2) : ["0.24.1", "0.25.0", "0.33.1", "0.35.0", "newest"];
const flags = ["", "retrieve_futures,join_sampling_session,cancel"];
const script = (name: string) => join(root, "test", "contract", name);
const rows: Parameters<typeof report>[1][number][] = [];

for (const version of versions) {
  const newest = version === "newest";
  const python = environment(`tinker-${version}`, newest ? ["tinker"] : [`tinker==${version}`], { fresh: newest });
  const name = `tinker ${versionOf(python, "tinker")}${newest ? " (newest)" : ""}`;
  for (const flag of newest ? flags : flags.slice(0, 1)) {
    const state = mkdtempSync(join(tmpdir(), "whetstone-compat-"));
    const server = await startServe([
      "engine=simulated",
      `state_dir=${state}`,
      ...(flag ? [`client_flags=${flag}`] : []),
    ]);
    const env = { TINKER_BASE_URL: server.baseUrl, TINKER_API_KEY: server.apiKey };
    const what = flag ? `${name}, all flags on` : name;
    try {
      const suite = await run(python, [script("official_sdk.py")], { env, quiet: true, timeoutMs: 300_000 });
      const lines = suite.output.split("\n").filter((line) => line.startsWith("{"));
      const summary = JSON.parse(lines.pop() ?? "{}") as { checks?: number; failed?: number };
      for (const line of lines) if (line.includes('"ok": false')) console.log(line);
      const found = `${(summary.checks ?? 0) - (summary.failed ?? 0)} of ${summary.checks ?? 0} checks, ${suite.seconds.toFixed(0)} s`;
      rows.push({ what, passed: suite.code === 0, found });
      const pickled = await run(python, [script("pickled_sdk.py"), "8", "1000"], {
        env,
        quiet: true,
        timeoutMs: 300_000,
      });
      rows.push({
        what: `  pickled clients in 8 processes`,
        passed: pickled.code === 0,
        found:
          pickled.output
            .trim()
            .split("\n")
            .findLast((line) => line.startsWith("{")) ?? pickled.output.slice(-300),
      });
    } finally {
      await server.close();
    }
  }
}
report("The official SDK on ./whet serve", rows);
