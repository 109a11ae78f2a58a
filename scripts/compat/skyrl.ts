// A live SkyRL server (JAX backend, this machine's CPU) with the bundled model: doctor, three training steps, a kill and a resume, an
// evaluation. Takes about ten minutes on two cores, most of it compilation.
//     node --import ./src/core/ts-loader.mjs scripts/compat/skyrl.ts [SOURCE]      SOURCE: a checkout of SkyRL instead of the release
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import {
  environment,
  freePort,
  newerPython,
  report,
  root,
  run,
  say,
  serveProcess,
  untilHealthy,
  versionOf,
  whet,
} from "./common.ts";

const source = process.argv[2] === undefined ? undefined : resolve(process.argv[2]);
// Its own limit is tinker <= 0.24.1.
const packages = ["skyrl[tinker,jax]==0.3.0", "tinker==0.24.1", "zstandard", "xxhash", "pytest"];
const python = environment("skyrl-0.3.0", packages, { python: newerPython() });
const folder = mkdtempSync(join(tmpdir(), "whetstone-skyrl-"));
const model = join(root, "models", "nano-coder");

/** SkyRL starts its engine through `uv run`, which would install everything once more. */
function uvStandIn(): string {
  const path = join(folder, "uv");
  writeFileSync(path, `#!/bin/bash\nwhile [ $# -gt 0 ] && [ "$1" != "-m" ]; do shift; done\n"${python}" "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}

const port = await freePort();
const url = `http://127.0.0.1:${port}`;
const name = source ? `SkyRL of ${source}` : `SkyRL ${versionOf(python, "skyrl")}`;
const server = await serveProcess(
  uvStandIn(),
  [
    ...["run", "-m", "skyrl.tinker.api", "--base-model", model, "--host", "127.0.0.1", "--port", String(port)],
    ...["--backend", "jax", "--backend-config", '{"max_lora_adapters": 4, "max_lora_rank": 32}'],
    ...["--database-url", `sqlite:///${folder}/tinker.db`, "--checkpoints-base", join(folder, "checkpoints")],
  ],
  (child) => untilHealthy(url, child, 300_000),
  {
    logFile: join(folder, "server.log"),
    cwd: folder,
    env: {
      PATH: `${folder}:${process.env["PATH"]}`,
      HF_HUB_OFFLINE: "1",
      JAX_PLATFORMS: "cpu",
      ...(source && { PYTHONPATH: source }),
    },
  },
);
say(`${name} serves at ${url}; its log is ${folder}/server.log`);

const log = join(folder, "run");
const env = { TINKER_API_KEY: "tml-dummy" };
const target = [`base_url=${url}`, "preset=nano", `model_name=${model}`, "tokenizer=nano-coder"];
const small = [
  "prompts_per_step=4",
  "completions_per_prompt=4",
  "max_steps=3",
  "eval_every=0",
  "save_every=1",
  "tensorboard=false",
  `log_path=${log}`,
];
const rows: Parameters<typeof report>[1][number][] = [];
const seconds = (value: number) => `${value.toFixed(0)} s`;
try {
  const doctor = await run(whet, ["doctor", ...target], { env });
  rows.push({
    what: "doctor",
    passed: doctor.code === 0 && /^ready/m.test(doctor.output),
    found: seconds(doctor.seconds),
  });
  const killed = await run(whet, ["train", ...target, ...small], { env, until: /^step +\d+ /m });
  rows.push({
    what: "train, killed after its first step",
    passed: killed.code !== 0 && /^step +\d+ /m.test(killed.output),
    found: seconds(killed.seconds),
  });
  const resumed = await run(whet, ["train", ...target, ...small, "behavior_if_log_dir_exists=resume"], { env });
  rows.push({
    what: "resume, to three steps",
    passed: resumed.code === 0 && /^3 steps in/m.test(resumed.output),
    found: seconds(resumed.seconds),
  });
  const judged = await run(whet, ["eval", `run=${log}`, `base_url=${url}`, "eval_max_problems=24"], { env });
  rows.push({ what: "eval of what it trained", passed: judged.code === 0, found: seconds(judged.seconds) });
} finally {
  await server.stop();
}
report(`./whet on ${name}`, rows);
