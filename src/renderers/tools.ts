// The text that tells a model which tools it has. Its wording belongs to the model: it is taken from the model's own chat template
// at run time, by rendering a conversation of markers and cutting the system message out of the result.
import { RendererError } from "./errors.ts";
import type { ToolDeclaration } from "./messages.ts";
import { ChatTemplate } from "./template/jinja.ts";
import { toWireTools } from "./template/wire-messages.ts";

// Private-use characters: no template and no declaration has them.
const systemMark = "\uE000system\uE000";
const userMark = "\uE000user\uE000";

/** The system message's content with the declarations of `tools` in it, as the model's template writes it. */
export function withToolDeclarations(
  chatTemplate: string | undefined,
  model: string,
  system: string | undefined,
  tools: readonly ToolDeclaration[],
): string {
  if (chatTemplate === undefined) {
    throw new RendererError(
      "renderer/no-chat-template",
      `The files of ${model} have no chat template, and the text that declares tools is taken from it. ` +
        "Put chat_template.jinja beside tokenizer.json, or declare the tools in the system message yourself.",
    );
  }
  const messages = [{ role: "user", content: userMark }];
  if (system !== undefined) messages.unshift({ role: "system", content: systemMark });
  const template = new ChatTemplate(chatTemplate, { name: model });
  const text = template.controls.plain(
    template.render({ messages, tools: toWireTools(tools), addGenerationPrompt: false }),
  );
  const header = "<|im_start|>system\n";
  const end = text.indexOf(`<|im_end|>\n<|im_start|>user\n${userMark}`);
  if (!text.startsWith(header) || end < 0) {
    throw new RendererError(
      "renderer/bad-chat-template",
      `The chat template of ${model} does not declare tools in a ChatML system message (it begins ${JSON.stringify(text.slice(0, 60))}). ` +
        "Declare the tools in the system message yourself.",
    );
  }
  const content = text.slice(header.length, end);
  return system === undefined ? content : content.replace(systemMark, () => system);
}
