// docs/tutorial.md as a person follows it: every command of it in an empty folder, one after another; then what the commands say when
// something is wrong, on the same run. Python's part takes the environment of scripts/compat/peft.ts: WHET_COMPAT=1 ./whet test test/docs/tutorial
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { cacheFolder } from "../../src/core/cache.ts";
import { SafetensorsFile } from "../../src/engine/safetensors.ts";
import { type ServeProcess, startServe } from "../contract/serve-process.ts";
import { startHub } from "../data/hub-stand-in.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { cleanEnvironment, whetPath } from "../support/whet.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));
const written = readFileSync(`${root}docs/tutorial.md`, "utf8");
/** What is learned is not looked at here, so fewer steps do; with WHET_COMPAT=1 as many as the page says. */
const steps = process.env["WHET_COMPAT"] === "1" ? 20 : 4;
const page = written.replace("max_steps=20", `max_steps=${steps}`).replace("eval_every=20", `eval_every=${steps}`);
const blocks = (language: string) =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(([, block]) => block!);
const newFolder = foldersInMemory();
let folder: string;
const said = new Map<string, { stdout: string; stderr: string }>();

beforeAll(async () => {
  folder = newFolder();
  symlinkSync(whetPath, join(folder, "whet"));
  for (const block of blocks("bash")) {
    const output = await run("bash", ["-euo", "pipefail", "-c", block], {
      cwd: folder,
      env: cleanEnvironment(),
      maxBuffer: 1 << 26,
    });
    said.set(block, output);
  }
}, 600_000);

const output = (command: string) => {
  const [, found] = [...said].find(([block]) => block.includes(command))!;
  return found;
};
const whet = (...args: string[]) => runCommand(args, { cwd: folder });

test("each command says what the page says of it", () => {
  expect(output("whet certify").stdout).toMatch(/countdown[\s\S]*no-vowels/);
  const trained = output("whet train").stderr;
  expect(written).toContain("max_steps=20 prompts_per_step=5 completions_per_prompt=8 eval_every=20");
  expect(trained).toContain(`${steps} steps in`);
  // It is measured on what it trains on, which is said; it has learned all the same.
  expect(trained).toMatch(/^error: the diagnosis has an error after step 0, train-test-overlap: /m);
  expect(trained).toMatch(/^ {2}# ask it .*\n {2}\S*whet sample run=\S*first checkpoint=base,final \S+ grade=true$/m);
  expect(trained).toMatch(/^ {2}# take .*\n {2}\S*whet export run=\S*first out=\S*first-adapter$/m);
  const measured = output("whet eval").stdout;
  expect(measured).toMatch(/compared with base: .* on 5 problems; \d+ gained, \d+ lost, sign test p = /);
  const row = /^first +finished +(\d+)\/(\d+) +\d+\.\d% → \d+\.\d% +\S+ +\d+ (?:s|min|h) ago$/m.exec(measured)!;
  expect(row.slice(1).map(Number)).toEqual([steps, steps]);
  const sampled = output("checkpoint=base,final").stdout;
  expect(sampled).toMatch(/^── problem countdown\nThe input is two integers n and m [^\n]*\n\n── base model/);
  expect(sampled).toMatch(/── base model nano-coder, \d+ tokens?[\s\S]*── checkpoint final, \d+ tokens?/);
  expect(sampled).toMatch(/verdict +(pass: 3 tests|fail: )/);
  expect(sampled).toMatch(/base model nano-coder: [01] of 1 passed\ncheckpoint final: [01] of 1 passed/);
});

test("the exported folders hold what other programs look for, and the card what a reader asks", () => {
  expect(readdirSync(join(folder, "first-adapter")).sort()).toEqual([
    "README.md",
    "adapter_config.json",
    "adapter_model.safetensors",
    "curves.svg",
  ]);
  expect(readdirSync(join(folder, "first-model")).sort()).toEqual(
    [
      "README.md",
      "config.json",
      "curves.svg",
      "generation_config.json",
      "model.safetensors",
      "tokenizer.json",
      "tokenizer_config.json",
    ].sort(),
  );
  const card = readFileSync(join(folder, "first-adapter", "README.md"), "utf8");
  expect(card).toMatch(/^---\nlibrary_name: peft\nlicense: "apache-2.0"/);
  expect(card).toMatch(new RegExp(`\\| ${steps} \\| \\d+\\.\\d% \\[\\d+\\.\\d%, \\d+\\.\\d%\\] \\| 5 \\|`));
  expect(card).toContain("`problems.jsonl`");
  expect(readdirSync(folder).filter((name) => name.endsWith(".part"))).toEqual([]);
});

test("a merged model has the names and shapes that its config promises to every converter", () => {
  const config = JSON.parse(readFileSync(join(folder, "first-model", "config.json"), "utf8")) as Record<string, number>;
  // By name, since each of these must be there.
  const [width, inner, headWidth] = [config["hidden_size"]!, config["intermediate_size"]!, config["head_dim"]!];
  const [queries, keys] = [config["num_attention_heads"]! * headWidth, config["num_key_value_heads"]! * headWidth];
  const block: Record<string, number[]> = {
    "self_attn.q_proj": [queries, width],
    "self_attn.k_proj": [keys, width],
    "self_attn.v_proj": [keys, width],
    "self_attn.o_proj": [width, queries],
    "self_attn.q_norm": [headWidth],
    "self_attn.k_norm": [headWidth],
    "mlp.gate_proj": [inner, width],
    "mlp.up_proj": [inner, width],
    "mlp.down_proj": [width, inner],
    input_layernorm: [width],
    post_attention_layernorm: [width],
  };
  const wanted: Record<string, number[]> = {
    "model.embed_tokens.weight": [config["vocab_size"]!, width],
    "model.norm.weight": [width],
    "lm_head.weight": [config["vocab_size"]!, width],
  };
  for (let layer = 0; layer < config["num_hidden_layers"]!; layer++)
    for (const [name, shape] of Object.entries(block)) wanted[`model.layers.${layer}.${name}.weight`] = shape;
  const file = new SafetensorsFile(join(folder, "first-model", "model.safetensors"));
  expect(Object.fromEntries([...file.entries].map(([name, { shape }]) => [name, shape]))).toEqual(wanted);
  file.close();
  // The head is adapted and so no longer the embedding.
  expect(config["tie_word_embeddings"]).toBe(false);
});

test("a base model is fetched from the hub by its name, once, and gives the same model", async () => {
  const model = join(root, "models", "nano-coder");
  const names = readdirSync(model).filter((name) => !name.endsWith(".jsonl"));
  const files = Object.fromEntries(names.map((name) => [name, readFileSync(join(model, name))]));
  const hub = await startHub([{ name: "models/someone/nano-coder", files, token: "hf_secret" }]);
  const env = { HF_ENDPOINT: hub.endpoint, HF_TOKEN: "hf_secret", HOME: newFolder() };
  const base = ["merge=true", "dtype=float32", "base=someone/nano-coder"];
  try {
    const merged = await runCommand(["export", "run=first", "out=from-hub", ...base], { cwd: folder, env });
    expect(merged.code, merged.stderr).toBe(0);
    expect(merged.stderr).not.toContain("hf_secret");
    for (const name of ["model.safetensors", "config.json", "tokenizer.json"])
      expect(readFileSync(join(folder, "from-hub", name)).equals(readFileSync(join(folder, "first-model", name)))).toBe(
        true,
      );
    expect(readFileSync(join(folder, "from-hub", "README.md"), "utf8")).toMatch(
      /^base_model:[\s-]*"?someone\/nano-coder"?$/m,
    );
    // What was fetched is kept, and a name that the hub does not have is said before anything is written.
    const sent = hub.sentBytes;
    expect((await runCommand(["export", "run=first", "out=again", ...base], { cwd: folder, env })).code).toBe(0);
    expect(hub.sentBytes).toBe(sent);
    const missing = [...base.slice(0, 2), "base=someone/else"];
    const unknown = await runCommand(["export", "run=first", "out=unknown", ...missing], { cwd: folder, env });
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringMatching(/someone\/else.*\[hub\//s)]);
    expect(existsSync(join(folder, "unknown"))).toBe(false);
  } finally {
    await hub.close();
  }
});

describe("on a server that has the run's checkpoints", () => {
  let server: ServeProcess;
  beforeAll(async () => {
    const state = join(newFolder(), "state");
    cpSync(join(folder, "first", "engine"), state, { recursive: true });
    server = await startServe([`state_dir=${state}`]);
  });
  const env = () => cleanEnvironment({ TINKER_API_KEY: server.apiKey });

  test("a problem comes from stdin or a file, and tests from a file", async () => {
    const text = "You are given integers on one line, separated by spaces. Print the largest number.";
    writeFileSync(join(folder, "problem.txt"), text);
    writeFileSync(join(folder, "tests.json"), JSON.stringify([{ input: "1 7 3\n", output: "7\n" }]));
    const ask = async (...words: string[]) => {
      const args = ["sample", "run=first", `base_url=${server.baseUrl}`, ...words, "json=true"];
      const asked = run(whetPath, args, { cwd: folder, env: env() });
      asked.child.stdin!.end(text);
      return JSON.parse((await asked).stdout) as Record<string, unknown>;
    };
    const typed = await ask(text);
    const same = { text: typed["text"], prompt_tokens: typed["prompt_tokens"] };
    expect(await ask("problem.txt")).toMatchObject(same);
    const graded = await ask("-", "tests=tests.json");
    expect(graded).toMatchObject({ ...same, verdict: expect.stringMatching(/^(pass|fail)$/), total: 1 });
    writeFileSync(join(folder, "no-tests.json"), "[]");
    const wrong = ["sample", "run=first", `base_url=${server.baseUrl}`, "problem.txt", "tests=no-tests.json"];
    const refused = await runCommand(wrong, { cwd: folder, env: { TINKER_API_KEY: server.apiKey } });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("[config/no-tests]")]);
  });

  test("an adapter fetched from it is the run's own, byte for byte", async () => {
    const args = ["export", "run=first", "out=fetched", `base_url=${server.baseUrl}`];
    const fetched = await runCommand(args, { cwd: folder, env: { TINKER_API_KEY: server.apiKey } });
    expect(fetched.stderr).toContain("fetching checkpoint final");
    expect(fetched.code).toBe(0);
    for (const name of ["adapter_config.json", "adapter_model.safetensors"])
      expect(
        readFileSync(join(folder, "fetched", name)).equals(readFileSync(join(folder, "first-adapter", name))),
      ).toBe(true);
    expect(await server.close()).toBe(0);
  });
});

test("what is wrong is said before anything is written or sampled", async () => {
  const cases: [string[], RegExp, number][] = [
    [["export", "run=first", "out=first-adapter"], /is there already and is not empty.*\[export\/exists\]/, 1],
    [["export", "run=first"], /Write out=DIR.*\[config\/no-out\]/, 2],
    [["export", "run=nowhere", "out=x"], /There is no run "nowhere"\. There are .*first.*\[config\/no-run\]/, 2],
    [["export", "run=first", "out=x", "checkpoint=000007"], /no checkpoint "000007".*it has: .*final/, 2],
    [
      ["export", "run=first", "out=x", "merge=true", "base=/nowhere"],
      /base=\/nowhere is neither.*\[export\/no-base\]/,
      1,
    ],
    [["export", "run=first", "out=/proc/x"], /\[export\/not-writable\]/, 1],
    [["sample", "run=first"], /No problem was given.*\[config\/one-problem\]/, 2],
    [["sample", "run=first", "print", "the"], /Put the problem into quotes/, 2],
    [["eval", "run=first", "compare=elsewhere/run"], /There is no run "elsewhere\/run"/, 2],
  ];
  for (const [args, message, code] of cases) {
    const result = await whet(...args);
    expect(result.stderr, args.join(" ")).toMatch(message);
    expect(result.code, args.join(" ")).toBe(code);
  }
  expect(existsSync(join(folder, "x"))).toBe(false);
});

test("a disk that fills up leaves nothing behind", async () => {
  // A limit on the size of files stands for the full disk.
  const command = "trap '' XFSZ; ulimit -f 2000; exec ./whet export run=first out=full merge=true dtype=float32";
  const outcome = run("bash", ["-c", command], { cwd: folder, env: cleanEnvironment() });
  await expect(outcome).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/disk is full \(EFBIG\)[\s\S]*\[export\/disk-full\]/),
  });
  expect(readdirSync(folder).filter((name) => name.includes("full"))).toEqual([]);
});

test("runs are listed whatever is wrong with them", async () => {
  const runs = newFolder();
  for (const name of ["killed", "damaged", "no config"])
    cpSync(join(folder, "first"), join(runs, name), { recursive: true });
  const segment = (name: string) =>
    join(
      runs,
      name,
      "journal",
      readdirSync(join(runs, name, "journal"))
        .filter((file) => file.endsWith(".wj"))
        .at(-1)!,
    );
  // A killed process leaves the last event cut short, and no word that it stopped.
  const whole = readFileSync(segment("killed"));
  writeFileSync(segment("killed"), whole.subarray(0, whole.length - 5));
  const broken = Buffer.from(whole);
  broken.fill(0, 100, 400);
  writeFileSync(segment("damaged"), broken);
  rmSync(join(runs, "no config", "config.json"));
  mkdirSync(join(runs, "no run"));
  writeFileSync(join(runs, "no run", "notes.txt"), "");
  const { stdout, code } = await runCommand(["runs", "."], { cwd: runs });
  expect(stdout).toMatch(new RegExp(`^killed +crashed +${steps}/${steps}`, "m"));
  expect(stdout).toMatch(/^damaged +broken.*\n.*is damaged at byte/m);
  // The journal has the configuration too.
  expect(stdout).toMatch(new RegExp(`^no config +finished +${steps}/${steps}`, "m"));
  expect(stdout).not.toContain("no run");
  expect(code).toBe(0);
  // Checkpoints that are gone are an error that names them.
  const alone = join(newFolder(), "alone");
  cpSync(join(folder, "first"), alone, { recursive: true });
  rmSync(join(alone, "engine", "checkpoints"), { recursive: true });
  const missing = await runCommand(["export", `run=${alone}`, `out=${join(runs, "out")}`]);
  expect(missing.stderr).toMatch(/is in none of the runs beside|holds no whole checkpoint/);
  expect(missing.code).toBe(2);
});

const python = join(cacheFolder(), "compat", "cookbook", "bin", "python");
const reason =
  process.env["WHET_COMPAT"] !== "1"
    ? "WHET_COMPAT=1 is not set"
    : existsSync(python)
      ? undefined
      : `there is no ${python}; node --import ./src/core/ts-loader.mjs scripts/compat/peft.ts makes it`;
if (reason) console.log(`transformers and peft are not tried: ${reason}`);

test.skipIf(reason !== undefined)(
  "transformers and peft give the engine's numbers and its answer",
  async () => {
    const env = { ...cleanEnvironment(), HF_HUB_OFFLINE: "1" };
    expect((await whet("export", "run=first", "out=small", "merge=true")).code).toBe(0);
    const check = join(root, "scripts", "compat", "export_check.py");
    const { stdout } = await run(python, [check, "first-adapter", "first-model", "small", "answer.json"], {
      cwd: folder,
      env,
    });
    console.log(stdout.trim());
    const found = JSON.parse(stdout.trim().split("\n").at(-1)!) as Record<string, number | boolean | string[]>;
    expect(found["adapter_differs_by"]).toBeLessThan(1e-4);
    expect(found["merged_differs_by"]).toBeLessThan(1e-4);
    expect(found["bfloat16_differs_by"]).toBeLessThan(0.2);
    expect(found["base_differs_by"]).toBeGreaterThan(1e-3);
    expect(found).toMatchObject({ adapter_greedy_same: true, merged_greedy_same: true, text_same: true, unloaded: [] });
    // The page's own script.
    const script = await run(python, ["-c", blocks("python")[0]!], { cwd: folder, env });
    expect(script.stdout).toContain("the same as ./whet sample: True");
  },
  600_000,
);
