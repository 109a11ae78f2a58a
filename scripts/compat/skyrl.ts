// engine=skyrl from nothing on this machine, on its GPU or else its processor, with the bundled model: install, doctor, a run that is
// killed after its first step, resumed to three, evaluated; then what is left of it. Ten minutes on two cores, most of it compilation.
//     node --import ./src/core/ts-loader.mjs scripts/compat/skyrl.ts [SOURCE]      SOURCE: a checkout of SkyRL instead of the release
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { report, run, whet } from "./common.ts";

const source = process.argv[2] === undefined ? undefined : resolve(process.argv[2]);
const folder = mkdtempSync(join(tmpdir(), "compat-skyrl-"));
const log = join(folder, "run");
const env = {
  WHETSTONE_CACHE: join(folder, "cache"),
  TMPDIR: folder,
  ...(source && { PYTHONPATH: source }),
};
const small = ["prompts_per_step=4", "completions_per_prompt=4", "max_steps=3", "eval_every=0", "save_every=1"];
const train = ["train", "engine=skyrl", ...small, "dashboard=false", "tensorboard=false", `log_path=${log}`];

/** Processes of the engine that live. */
const alive = () =>
  readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").includes(join(folder, "cache"));
    } catch {
      return false;
    }
  });

/** Seconds until nothing of the engine is left. */
async function untilGone(): Promise<number> {
  const started = performance.now();
  while (alive().length > 0 && performance.now() - started < 60_000) await new Promise((done) => setTimeout(done, 200));
  return (performance.now() - started) / 1000;
}

const rows: Parameters<typeof report>[1][number][] = [];
const row = (what: string, passed: boolean, found: string) => rows.push({ what, passed, found });
const seconds = (value: number) => `${value.toFixed(0)} s`;
try {
  const doctor = await run(whet, ["doctor", "engine=skyrl", "preset=nano"], { env });
  const installed = /is installed, in (\d+ s)/.exec(doctor.output)?.[1];
  row(
    "doctor, which installs it",
    doctor.code === 0 && /^ready/m.test(doctor.output),
    `${seconds(doctor.seconds)}${installed ? `, ${installed} of them installing` : ""}`,
  );
  row("nothing is left of it", (await untilGone()) < 60, "");
  const killed = await run(whet, train, { env, until: /^step +\d+ /m });
  row(
    "train, killed with kill -9 after its first step",
    killed.code !== 0 && /^step +\d+ /m.test(killed.output),
    seconds(killed.seconds),
  );
  row("its processes end with it", (await untilGone()) < 60 && alive().length === 0, "");
  const resumed = await run(whet, ["resume", log], { env });
  row("resume, to three steps", resumed.code === 0 && /^3 steps in/m.test(resumed.output), seconds(resumed.seconds));
  row("samplers were tried and found not frozen", /not frozen on this server/.test(resumed.output), "max_lag=0");
  const judged = await run(whet, ["eval", `run=${log}`, "eval_max_problems=24"], { env });
  row("eval of what it trained", judged.code === 0, seconds(judged.seconds));
  const asked = await run(whet, ["export", `run=${log}`, `out=${join(folder, "adapter")}`], { env });
  row(
    "export of its adapter",
    asked.code === 0 && existsSync(join(folder, "adapter", "adapter_model.safetensors")),
    seconds(asked.seconds),
  );
  const removed = await run(whet, ["engines", "remove=skyrl"], { env });
  row("engines remove=skyrl", removed.code === 0, removed.output.trim());
  const left = readdirSync(folder).filter((name) => name.startsWith("whet"));
  row("no process and no temporary file left", alive().length === 0 && left.length === 0, left.join(" "));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
report(`./whet with engine=skyrl${source ? ` of ${source}` : ""}`, rows);
