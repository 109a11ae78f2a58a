// The renderer names of tinker-cookbook, and what each stands for here. Most are the model's own template with a switch; those that
// write something else than the model's template are refused with the reason.
import type { RendererSettings } from "./renderer.ts";

export interface Alias {
  /** The renderer it means. */
  renderer: string;
  settings?: Pick<RendererSettings, "thinking" | "templateSettings">;
  /** Where it differs from the cookbook's. */
  note?: string;
}

const template = (settings?: Alias["settings"], note?: string): Alias => ({
  renderer: "template",
  ...(settings ? { settings } : {}),
  ...(note === undefined ? {} : { note }),
});
const off = template({ thinking: "off" });
const keepThinking = template({ templateSettings: { truncate_history_thinking: false } });
const effort = (level: string) => template({ templateSettings: { reasoning_effort: level } });
const kimiNote = "the cookbook adds a system message that the model's template does not write";

export const aliases: Readonly<Record<string, Alias>> = {
  qwen3_5: template(),
  qwen3_5_disable_thinking: off,
  qwen3_6: template(),
  qwen3_6_disable_thinking: off,
  qwen3_8: template(),
  qwen3_8_xhigh_reasoning: effort("xhigh"),
  qwen3_8_medium_reasoning: effort("medium"),
  qwen3_8_low_reasoning: effort("low"),
  qwen3_8_disable_thinking: off,
  gpt_oss_low_reasoning: effort("low"),
  gpt_oss_medium_reasoning: effort("medium"),
  gpt_oss_high_reasoning: effort("high"),
  deepseekv3: off,
  deepseekv3_disable_thinking: off,
  deepseekv3_thinking: template({ thinking: "on" }),
  kimi_k2: template(),
  kimi_k25: template({}, kimiNote),
  kimi_k25_disable_thinking: template({ thinking: "off" }, kimiNote),
  kimi_k26: template({}, kimiNote),
  kimi_k26_disable_thinking: template({ thinking: "off" }, kimiNote),
  kimi_k26_preserve_thinking: template({ templateSettings: { preserve_thinking: true } }, kimiNote),
  nemotron3: template(),
  nemotron3_disable_thinking: off,
  nemotron3_preserve_thinking: keepThinking,
  nemotron3_low_thinking: template({ thinking: "low" }),
  nemotron3_ultra: template(),
  nemotron3_ultra_disable_thinking: off,
  nemotron3_ultra_medium_thinking: template({ thinking: "medium" }),
  nemotron3_ultra_preserve_thinking: keepThinking,
};

/** Names of the cookbook that are refused, and why. */
export const refusedNames: Readonly<Record<string, string>> = {
  gpt_oss_no_sysprompt:
    "the model's template always writes its system message, and this name means a prompt without it. Use gpt_oss_low_reasoning, gpt_oss_medium_reasoning or gpt_oss_high_reasoning",
  llama3: "it leaves out the preamble that the model's template writes. Use template",
  qwen3_vl: "images are not supported",
  qwen3_vl_instruct: "images are not supported",
};

/** What an alias stands for, in words. */
export function describeAlias(name: string, { renderer, settings, note }: Alias): string {
  const switches = [
    ...(settings?.thinking ? [`thinking=${settings.thinking}`] : []),
    ...Object.entries(settings?.templateSettings ?? {}).map(([key, value]) => `${key}=${String(value)}`),
  ];
  const meaning = switches.length > 0 ? `${renderer} with ${switches.join(", ")}` : renderer;
  return `renderer_name=${name} stands for ${meaning}${note === undefined ? "" : ` (${note})`}`;
}
