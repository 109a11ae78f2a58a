// The chat formats by name, and which of them a model wants.
import { nearest } from "../core/nearest.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { RendererError } from "./errors.ts";
import { type Qwen3Options, Qwen3Renderer } from "./qwen3.ts";
import type { Renderer } from "./renderer.ts";

export interface RendererSettings {
  /** For the thinking formats: drop the reasoning of earlier turns, as the model's template does. Default true. */
  stripThinkingFromHistory?: boolean;
}

const thinkingByName = {
  qwen3: "on",
  qwen3_disable_thinking: "off",
  qwen3_instruct: "never",
} as const satisfies Record<string, Qwen3Options["thinking"]>;

export type RendererName = keyof typeof thinkingByName;

export const rendererNames = Object.keys(thinkingByName) as RendererName[];

/** The chat format `name` on a tokenizer. */
export function getRenderer(name: string, tokenizer: Tokenizer, settings: RendererSettings = {}): Renderer {
  if (!Object.hasOwn(thinkingByName, name)) {
    const close = nearest(name, rendererNames);
    throw new RendererError(
      "renderer/unknown",
      `Unknown renderer ${JSON.stringify(name)}. Known: ${rendererNames.join(", ")}.${close ? ` Did you mean ${close}?` : ""}`,
    );
  }
  return new Qwen3Renderer(name, tokenizer, { ...settings, thinking: thinkingByName[name as RendererName] });
}

/** The formats that fit a model, best first; none for a model that is not known here. */
export function suitableRenderers(modelName: string): readonly RendererName[] {
  const name = modelName.split("/").at(-1)!.toLowerCase();
  if (name.startsWith("nano-coder")) return ["qwen3_instruct"];
  if (!/^qwen3-/.test(name) || /-base$|-thinking-|-coder|-vl-|-omni|-embedding|-reranker/.test(name)) return [];
  return name.includes("-instruct-2507") ? ["qwen3_instruct"] : ["qwen3", "qwen3_disable_thinking"];
}

/** The best format for a model, or undefined. */
export function recommendedRenderer(modelName: string): RendererName | undefined {
  return suitableRenderers(modelName)[0];
}

/** What to tell a person who chose `name` for a model that wants another format; undefined when it fits or nothing is known. */
export function rendererWarning(modelName: string, name: string): string | undefined {
  const suitable: readonly string[] = suitableRenderers(modelName);
  if (suitable.length === 0 || suitable.includes(name)) return undefined;
  return `The renderer ${name} is not what ${modelName} was trained with: its prompts will look foreign to the model. Use ${suitable.join(" or ")}.`;
}
