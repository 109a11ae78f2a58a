// What a hosted model's name says: which model it is a variant of, and whose tokenizer it has.

/** The model that a name is a variant of: `owner/name:peft:131072` is `owner/name` with a longer window. */
export const withoutVariant = (name: string): string => name.replace(/:[^/]*$/, "");

/**
 * The Hugging Face id of a model's tokenizer. A suffix after ":" (a variant, such as a context length) is not part of it, nor is the
 * third part of a three-part name.
 */
export function tokenizerIdOf(model: {
  tokenizerId?: string | undefined;
  modelName?: string | undefined;
}): string | undefined {
  const given = withoutVariant(model.tokenizerId ?? "");
  if (given !== "") return given;
  const name = withoutVariant(model.modelName ?? "");
  if (name.startsWith("meta-llama/Llama-3")) return "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer";
  const parts = name.split("/");
  return (parts.length === 3 ? parts.slice(0, 2).join("/") : name) || undefined;
}
