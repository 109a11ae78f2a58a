// What a server says of its model decides where nothing is named, in the command as in the library: the tokenizer, and the context window.
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { SimulatedEngineOptions } from "../../src/engine/simulated/engine.ts";
import { runCommand } from "../support/command-process.ts";
import { eventsOf, type LoopRig, loopRig, newFolder } from "../support/loop-rig.ts";

const bundled = fileURLToPath(new URL("../../models/nano-coder/", import.meta.url));
/** The bundled tokenizer in a place of its own, which no model's name leads to. */
const elsewhere = join(newFolder(), "a-tokenizer");
mkdirSync(elsewhere);
for (const name of ["tokenizer.json", "tokenizer_config.json"])
  copyFileSync(join(bundled, name), join(elsewhere, name));

const small = { max_steps: 1, prompts_per_step: 2, completions_per_prompt: 4, eval_every: 0, seed: 3 };
type Settings = Readonly<Record<string, string | number>>;

/** A run by the command and one by the library, with the same settings; what each said, and where it is. */
async function both(rig: LoopRig, settings: Settings): Promise<{ path: string; said: string; code: number | null }[]> {
  const all: Settings = { ...small, max_tokens: 12, min_generation: 8, ...settings };
  const paths = [join(newFolder(), "run"), join(newFolder(), "run")] as const;
  const words = Object.entries(all).map(([key, value]) => `${key}=${value}`);
  const command = await runCommand(
    ["train", `base_url=${rig.url}`, "preset=nano", `log_path=${paths[0]}`, "dashboard=false", ...words],
    { env: { TINKER_API_KEY: "tml-test" } },
  );
  const lines: string[] = [];
  const library = await rig
    .train(paths[1], { config: all as object, onMessage: (line) => lines.push(line) })
    .then(() => 0)
    .catch((error: unknown) => {
      lines.push(String(error));
      return 1;
    });
  return [
    { path: paths[0], said: command.stderr, code: command.code },
    { path: paths[1], said: lines.join("\n"), code: library },
  ];
}

const configOf = (path: string) => JSON.parse(readFileSync(join(path, "config.json"), "utf8")) as Settings;
const modelsMade = (rig: LoopRig) => rig.audit().filter(({ op }) => op === "create_model").length;

describe("the tokenizer", () => {
  const unknown = "no-name-of-a-tokenizer";
  const rows: [what: string, engine: SimulatedEngineOptions, settings: Settings, used: string, said: string][] = [
    ["no key, a server that names one", { tokenizerId: elsewhere, modelName: unknown }, {}, elsewhere, elsewhere],
    ['tokenizer="", a server that names one', { tokenizerId: elsewhere }, { tokenizer: "" }, elsewhere, elsewhere],
    ["no key, a server that names none", {}, {}, "", ""],
    ["no key, a server that names a folder of its own", { tokenizerId: "/not/here" }, {}, "", "/not/here, is not here"],
    ["a key, a server that names another", { tokenizerId: "/not/here" }, { tokenizer: elsewhere }, elsewhere, ""],
  ];
  test.each(rows)(
    "%s",
    async (_, engine, settings, used, said) => {
      const rig = await loopRig(engine);
      const runs = await both(rig, { model_name: engine.modelName ?? "nano-coder", ...settings });
      for (const run of runs) {
        expect(run, run.said).toMatchObject({ code: 0 });
        expect(configOf(run.path)["tokenizer"]).toBe(used);
        expect(run.said).toContain(said);
      }
      // The model that was asked is the one that is trained.
      expect(modelsMade(rig)).toBe(2);
    },
    120_000,
  );

  test("a run keeps the tokenizer that it began with, and nobody is asked again", async () => {
    const rig = await loopRig({ tokenizerId: elsewhere });
    const path = join(newFolder(), "run");
    await rig.train(path, { config: small });
    await rig.train(path, { config: { ...small, max_steps: 2 } });
    expect(configOf(path)["tokenizer"]).toBe(elsewhere);
    const { changes } = eventsOf(path).findLast((event) => event.type === "started") as { changes: { key: string }[] };
    expect(changes.map(({ key }) => key)).toEqual(["max_steps"]);
    expect(rig.audit().filter(({ op }) => op === "create_model")).toHaveLength(2); // the second is the checkpoint's
  });
});

describe("the context window", () => {
  const rows: [what: string, engine: SimulatedEngineOptions, asked: number, counts: number][] = [
    ["the server's, where it is smaller", { maxContextLength: 256 }, 512, 256],
    ["the config's, where that is smaller", { maxContextLength: 1024 }, 512, 512],
    ["a long-context variant's", { modelName: "nano-coder:peft:2048", maxContextLength: 2048 }, 1500, 1500],
  ];
  test.each(rows)(
    "%s",
    async (_, engine, asked, counts) => {
      const rig = await loopRig(engine);
      const settings = { model_name: engine.modelName ?? "nano-coder", context_window: asked, max_tokens: asked };
      for (const run of await both(rig, settings)) {
        expect(run, run.said).toMatchObject({ code: 0 });
        expect(configOf(run.path)["context_window"]).toBe(counts);
        for (const event of eventsOf(run.path))
          if (event.type === "group-requested") expect(event.promptTokens + event.maxTokens).toBe(counts);
        if (counts < asked) expect(run.said).toContain(`context  ${counts} tokens`);
      }
    },
    120_000,
  );
});
