// Which tokenizer belongs to a model, by the rules of hosted Tinker.

/**
 * The Hugging Face id of a model's tokenizer. A suffix after ":" (a variant, such as a context length) is not part of it, nor is the
 * third part of a three-part name.
 */
export function tokenizerIdOf(model: {
  tokenizerId?: string | undefined;
  modelName?: string | undefined;
}): string | undefined {
  const beforeColon = (text: string | undefined) => text?.split(":", 1)[0] || undefined;
  const given = beforeColon(model.tokenizerId);
  if (given !== undefined) return given;
  const name = beforeColon(model.modelName);
  if (name === undefined) return undefined;
  if (name.startsWith("meta-llama/Llama-3")) return "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer";
  const parts = name.split("/");
  return parts.length === 3 ? parts.slice(0, 2).join("/") : name;
}
