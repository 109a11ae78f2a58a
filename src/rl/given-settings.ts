// The settings that a program gives, over a preset's: by the names of docs/config.md, every mistake named.
import type { z } from "zod";
import { ConfigError } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import { presetConfig, TrainConfig } from "./config.ts";
import type { TrainSettings } from "./settings.ts";
import { olderSizes, resolveSizes } from "./sizes.ts";

const Settings = TrainConfig.extend(olderSizes);

/** The whole config. A key that is given as undefined is not given. */
export function resolveSettings(settings: TrainSettings = {}): TrainConfig {
  const given: TrainSettings = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
  const base = presetConfig(given.preset ?? "deepcoder");
  const parsed = Settings.safeParse({ ...base, ...given });
  if (!parsed.success) throw badSetting(parsed.error.issues[0]!);
  const { batch_size: _, group_size: __, ...config } = parsed.data;
  if (config.engine === "embedded" || config.engine === "skyrl")
    throw new ConfigError(
      "config/conflict",
      `config.engine=${config.engine} is started by the command alone, and a program brings its server. Leave it out, and give service= the address of one.`,
    );
  return { ...config, ...resolveSizes(base, [given]) };
}

function badSetting(issue: z.core.$ZodIssue): ConfigError {
  if (issue.code !== "unrecognized_keys")
    return new ConfigError("config/bad-value", `config.${issue.path.join(".")} is not valid: ${issue.message}.`);
  const [key = ""] = issue.keys;
  const guess = nearest(key, Object.keys(Settings.shape));
  const hint = guess ? `Did you mean "${guess}"?` : "docs/config.md lists the keys.";
  return new ConfigError("config/unknown-key", `config has no key "${key}". ${hint}`);
}
