// `whetstone/renderers`: chat messages to tokens and back, as each model family writes them.
export { RendererError } from "./errors.ts";
export type { Extension } from "./extension.ts";
export {
  type Message,
  type ParsedResponse,
  type RenderOptions,
  type Role,
  type SupervisedExample,
  type SupervisedOptions,
  type Thinking,
  type ToolCall,
  type ToolDeclaration,
  type TrainOn,
  thinkingModes,
  trainOnModes,
} from "./messages.ts";
export {
  type ChosenRenderer,
  chooseRenderer,
  getRenderer,
  recommendedRenderer,
  rendererNames,
  rendererWarning,
  suitableRenderers,
} from "./registry.ts";
export type { Renderer, RendererSettings } from "./renderer.ts";
