// The public entry "whetstone/renderers".
export { RendererError } from "./errors.ts";
export {
  type Message,
  type ParsedResponse,
  type RenderOptions,
  type Role,
  type SupervisedExample,
  type SupervisedOptions,
  type ToolCall,
  type ToolDeclaration,
  type TrainOn,
  trainOnModes,
} from "./messages.ts";
export {
  getRenderer,
  type RendererName,
  type RendererSettings,
  recommendedRenderer,
  rendererNames,
  rendererWarning,
  suitableRenderers,
} from "./registry.ts";
export type { Renderer } from "./renderer.ts";
