// The chat formats by name, and which of them a model wants.
import { withoutVariant } from "../core/model-name.ts";
import { nearest } from "../core/nearest.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { aliases, describeAlias, refusedNames } from "./aliases.ts";
import { RendererError } from "./errors.ts";
import type { Thinking } from "./messages.ts";
import { qwen3Formats } from "./qwen3.ts";
import type { Renderer, RendererFormat, RendererSettings } from "./renderer.ts";
import { roleColon } from "./role-colon.ts";
import { templateFormat } from "./template/template-renderer.ts";

/** Every format; of those that suit a model the first is the best. */
const formats: readonly RendererFormat[] = [...qwen3Formats, roleColon, templateFormat];

/** The names of the formats. The names of tinker-cookbook are accepted too; see `aliases`. */
export const rendererNames: readonly string[] = formats.map(({ name }) => name);

/** The chat format `name` on a tokenizer. */
export function getRenderer(name: string, tokenizer: Tokenizer, settings: RendererSettings = {}): Renderer {
  const alias = Object.hasOwn(aliases, name) ? aliases[name] : undefined;
  const format = formats.find((candidate) => candidate.name === (alias?.renderer ?? name));
  if (!format) throw unknownName(name);
  const thinking = thinkingOf(name, alias?.settings?.thinking ?? "", settings.thinking ?? "");
  const templateSettings = { ...alias?.settings?.templateSettings, ...settings.templateSettings };
  if (!format.thinking || thinking === "")
    return format.create(tokenizer, { ...settings, thinking, templateSettings }, name);
  const chosen = formats.find((candidate) => candidate.name === format.thinking![thinking]);
  if (chosen) return chosen.create(tokenizer, settings, chosen.name);
  throw new RendererError(
    "renderer/thinking",
    `thinking=${thinking} is not something that ${name} can do. Its choices: ${Object.keys(format.thinking).join(", ")}.`,
  );
}

/** What an alias fixes and what was asked for must not contradict each other. */
function thinkingOf(name: string, fixed: Thinking, asked: Thinking): Thinking {
  if (fixed === "" || asked === "" || fixed === asked) return fixed || asked;
  throw new RendererError(
    "renderer/thinking",
    `thinking=${asked} contradicts renderer_name=${name}, which stands for thinking=${fixed}. Leave one of them out.`,
  );
}

function unknownName(name: string): RendererError {
  if (Object.hasOwn(refusedNames, name))
    return new RendererError("renderer/unknown", `The renderer ${name} is not to be had here: ${refusedNames[name]}.`);
  const close = nearest(name, [...rendererNames, ...Object.keys(aliases)]);
  return new RendererError(
    "renderer/unknown",
    `Unknown renderer ${JSON.stringify(name)}. Known: ${rendererNames.join(", ")}.${close ? ` Did you mean ${close}?` : ""}`,
  );
}

/** The formats that fit a model, best first. The model's own template always does. */
export function suitableRenderers(modelName: string): readonly string[] {
  const model = withoutVariant(modelName).split("/").at(-1)!.toLowerCase();
  return formats.filter((format) => format.suits(model)).map(({ name }) => name);
}

/** The best format for a model. */
export function recommendedRenderer(modelName: string): string {
  return suitableRenderers(modelName)[0]!;
}

/** What to tell a person who chose `name` for a model that wants another format; undefined when it fits or nothing is known. */
export function rendererWarning(modelName: string, name: string): string | undefined {
  const suitable = suitableRenderers(modelName);
  const meant = Object.hasOwn(aliases, name) ? aliases[name]!.renderer : name;
  // Where only the template is known to fit, a hand-made format may be a deliberate choice for a relative of its models.
  if (suitable.includes(meant) || suitable[0] === templateFormat.name) return undefined;
  return `The renderer ${name} is not what ${modelName} was trained with: its prompts will look foreign to the model. Use ${suitable.join(" or ")}.`;
}

/** A renderer that fits a model, and what is worth knowing about the choice. */
export interface ChosenRenderer {
  /** The renderer. */
  renderer: Renderer;
  /** What a person should know about the choice. */
  notices: string[];
  /** What does not quite fit; empty when all does. */
  warnings: string[];
}

/** The renderer for a model: the one that was named, or the one that fits. */
export function chooseRenderer(
  modelName: string,
  tokenizer: Tokenizer,
  { name = "", thinking = "" }: { name?: string; thinking?: Thinking } = {},
): ChosenRenderer {
  const recommended = recommendedRenderer(modelName);
  const notices: string[] = [];
  let chosen = name || recommended;
  if (name === "" && recommended === templateFormat.name && tokenizer.chatTemplate === undefined) {
    chosen = roleColon.name;
    notices.push(`the files of ${modelName} have no chat template; its prompts are plain text (${chosen})`);
  }
  if (Object.hasOwn(aliases, chosen)) notices.push(describeAlias(chosen, aliases[chosen]!));
  const warning = name === "" ? undefined : rendererWarning(modelName, name);
  const renderer = getRenderer(chosen, tokenizer, { thinking });
  return { renderer, notices, warnings: warning === undefined ? [] : [warning] };
}
