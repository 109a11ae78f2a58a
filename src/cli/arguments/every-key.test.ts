// No key that does nothing: a wrong use of each is refused, and each is read where something is done with it. The keys are the schema's
// own, so that a new one fails until it is in its place here.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { presetConfig, validateConfig } from "../../rl/config.ts";
import { configKeys } from "../../rl/config-keys.ts";
import { parseTrainArguments, TrainArguments } from "./train-config.ts";

/** Any text can be meant: whoever opens what they name refuses what is none. */
const free =
  "model_name from renderer_name tokenizer base_url engine_python env env_packages env_python agent kl_reference teacher train_data test_data blocked_ids " +
  "sandbox_url sandbox_python sandbox_packages log_path wandb_project wandb_name";

const names = Object.keys(TrainArguments.shape);
/** No value of a number, a switch, a choice, a language or JSON. */
const wrong = "@@";

test.each(names.filter((key) => !free.split(" ").includes(key)))("%s is refused where it is used wrongly", (key) => {
  expect(() => parseTrainArguments([`${key}=${wrong}`])).toThrow(`${key}=${wrong} is not valid`);
});

test("every other key takes any text", () => {
  const taken = names.filter((key) => {
    try {
      parseTrainArguments([`${key}=${wrong}`]);
      return true;
    } catch {
      return false;
    }
  });
  expect(taken.toSorted()).toEqual(free.split(" ").toSorted());
});

/** Numbers outside what makes sense; the least that each key allows is its own. */
describe("numbers", () => {
  const numbers = names.filter((key) => {
    const { data } = TrainArguments.shape[key as keyof typeof TrainArguments.shape].safeParse(undefined);
    return typeof data === "number";
  });

  test.each(numbers)("%s has a least value", (key) => {
    expect(() => parseTrainArguments([`${key}=-2`])).toThrow(`${key}=-2 is not valid`);
  });
});

describe("every key is read outside of where keys are declared, given defaults and checked", () => {
  const folder = fileURLToPath(new URL("../../", import.meta.url));
  const declared = ["rl/config-keys.ts", "rl/config-run.ts", "rl/config.ts", "rl/settings.ts"];
  const source = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.includes(".test.") && !declared.includes(name))
    .map((name) => readFileSync(`${folder}${name}`, "utf8").replaceAll(/^ *\/?[/*].*$/gm, ""))
    .join("\n");

  /** What it allows is all that it does. */
  const checkedAlone = "allow_unclipped";

  test.each(Object.keys(configKeys).filter((key) => key !== checkedAlone))("%s", (key) => {
    // As a member, in a pattern, or by its name; not within a message.
    const read = new RegExp(`\\.${key}\\b|[{,]\\s*${key}\\b(?!=)|^\\s*${key}[,:]|\\["${key}"\\]|"${key}"`, "m");
    expect(source).toMatch(read);
  });

  test(`${checkedAlone} allows what is refused without it`, () => {
    const old = { ...presetConfig("nano"), max_lag: 3 };
    expect(() => validateConfig(old)).toThrow("allow_unclipped=true goes ahead all the same");
    expect(validateConfig({ ...old, allow_unclipped: true }).join()).toContain("max_lag=3 with an unclipped loss");
  });
});
