// SkyRL's own API tests, unchanged, against `./whet serve`: they start their server with `uv run -m skyrl.tinker.api …`, and a stand-in
// for uv starts ours instead.
//     node --import ./src/core/ts-loader.mjs scripts/compat/skyrl-tests.ts SOURCE      SOURCE: a checkout of SkyRL
import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { writeTinyModel } from "../../test/support/tiny-model.ts";
import { environment, newerPython, report, run, whet } from "./common.ts";

/** What SkyRL does on purpose in another way, and where its tests look into its own files; see docs/compatibility.md. */
const otherwise: Readonly<Record<string, string>> = {
  test_training_workflow:
    "wants SkyRL's output type `scalar` with `elementwise_loss`, and loading refused after a first request",
  test_delete_checkpoint: "looks for SkyRL's files on disk, and wants a bare id refused",
  test_sample_prompt_logprobs: "wants top-k prompt logprobs refused, which this server has",
  test_stale_session_cleanup: "looks for SkyRL's words in the log",
};

const source = resolve(process.argv[2] ?? ".");
const packages = ["skyrl[tinker,jax]==0.3.0", "tinker==0.24.1", "zstandard", "xxhash", "pytest"];
const python = environment("skyrl-0.3.0", packages, { python: newerPython() });
const folder = mkdtempSync(join(tmpdir(), "whetstone-skyrl-tests-"));
const model = "trl-internal-testing/tiny-Qwen3ForCausalLM";
// Of this seed's greedy tokens the first five differ, which the tests count on.
writeTinyModel(join(folder, model), { seed: 15, maxPositions: 4096 });
symlinkSync(join(source, "tests"), join(folder, "tests"));
mkdirSync(join(folder, "bin"));
const uv = `#!/bin/bash
while [ $# -gt 0 ]; do
  case "$1" in
    --port) port=$2 ;;
    --session-timeout-sec) timeout=$2 ;;
  esac
  shift
done
exec "${whet}" serve port=$port api_key=tml-dummy model="${join(folder, model)}" model_name=${model} \\
  state_dir=$(mktemp -d) session_timeout_s=\${timeout:-300}
`;
writeFileSync(join(folder, "bin", "uv"), uv);
chmodSync(join(folder, "bin", "uv"), 0o755);
const done = await run(
  python,
  [
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "--import-mode=importlib",
    "-rA",
    "--tb=line",
    "-k",
    "not build_cmd",
    "tests/tinker/test_api.py",
  ],
  {
    cwd: folder,
    env: { PATH: `${join(folder, "bin")}:${process.env["PATH"]}`, PYTHONPATH: source, HF_HUB_OFFLINE: "1" },
    timeoutMs: 900_000,
  },
);
const results = [...done.output.matchAll(/^(PASSED|FAILED|ERROR|SKIPPED) \S*::(\w+)(\S*)/gm)];
report(
  "SkyRL's own API tests on ./whet serve",
  results.map(([, verdict, test, parameter]) => ({
    what: `${test}${parameter}`,
    passed: verdict === "PASSED" || test! in otherwise,
    found: verdict === "PASSED" ? "passed" : (otherwise[test!] ?? verdict!),
  })),
);
