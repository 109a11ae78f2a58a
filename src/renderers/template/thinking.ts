// Which settings of thinking a template takes. Templates have no common switch; each reads variables of its own, so the ones that are
// known are tried: a way of thinking is offered where its variables change the prompt, or are what the template does anyway.
import { RendererError } from "../errors.ts";
import { type Thinking, thinkingModes } from "../messages.ts";
import type { ChatTemplate } from "./jinja.ts";

type Settings = Readonly<Record<string, unknown>>;

/** The settings for each way of thinking that a template knows. */
export type ThinkingChoices = Partial<Record<Thinking, Settings>>;

const question = { messages: [{ role: "user", content: "?" }], addGenerationPrompt: true };

/** Which ways of thinking a template knows; `reasons` says whether its model has reasoning at all. */
export function thinkingChoices(template: ChatTemplate, reasons: boolean): ThinkingChoices {
  const prompt = (settings: Settings) => {
    try {
      return template.render({ ...question, settings });
    } catch {
      return undefined;
    }
  };
  const choices: ThinkingChoices = {};
  const offer = (mode: Thinking, settings: Settings) => {
    if (choices[mode] === undefined) choices[mode] = settings;
  };
  const usual = prompt({});
  for (const variable of ["enable_thinking", "thinking"]) {
    if (!template.variables.has(variable)) continue;
    const [on, off] = [prompt({ [variable]: true }), prompt({ [variable]: false })];
    if (on === undefined || off === undefined || on === off) continue;
    offer("on", { [variable]: true });
    offer("off", { [variable]: false });
  }
  for (const level of ["low", "medium", "high"] as const) {
    for (const settings of [{ reasoning_effort: level }, { [`${level}_effort`]: true }]) {
      const [variable] = Object.keys(settings) as [string];
      const text = template.variables.has(variable) ? prompt(settings) : undefined;
      // A template that only prints the level changes for every level; one that knows its levels refuses the others.
      if (text !== undefined && (text !== usual || variable === "reasoning_effort")) offer(level, settings);
    }
  }
  offer(reasons ? "on" : "off", {});
  return choices;
}

/** The settings for a way of thinking; what the template cannot do is refused with what it can. */
export function thinkingSettings(choices: ThinkingChoices, thinking: Thinking, model: string): Settings {
  if (thinking === "") return {};
  const settings = choices[thinking];
  if (settings) return settings;
  const known = thinkingModes.filter((mode) => choices[mode] !== undefined);
  throw new RendererError(
    "renderer/thinking",
    `thinking=${thinking} is not something that the chat template of ${model} can do. Its choices: ${known.join(", ")}.`,
  );
}
