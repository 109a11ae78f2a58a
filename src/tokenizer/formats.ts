// Which tokenizers a tokenizer.json can describe, and how each spells its tokens.
import { byteLevelSpelling, type Spelling, sentencePieceSpelling } from "./decode.ts";
import { TokenizerError } from "./errors.ts";
import type { AddedToken } from "./tokenizer.ts";

interface Part {
  type?: string;
  decoders?: Part[];
  normalizers?: Part[];
  pretokenizers?: Part[];
  replacement?: string;
  prepend_scheme?: string;
  pattern?: { String?: string };
  content?: string;
}

/** The parts of tokenizer.json that are looked at here; the library reads the rest. */
export interface TokenizerJson {
  added_tokens?: AddedToken[];
  normalizer?: Part | null;
  pre_tokenizer?: Part | null;
  decoder?: Part | null;
  model?: { type?: string; vocab?: unknown };
}

const flatten = (part: Part | null | undefined): Part[] =>
  part
    ? [
        part,
        ...[part.decoders, part.normalizers, part.pretokenizers].flatMap((parts) => (parts ?? []).flatMap(flatten)),
      ]
    : [];

/** How the vocabulary spells bytes; throws for a kind of tokenizer that cannot be used. */
export function spellingOf(json: TokenizerJson, name: string): Spelling {
  const decoders = flatten(json.decoder);
  const named = (type: string) => decoders.find((decoder) => decoder.type === type);
  const model = json.model?.type;
  if (model === "BPE" && named("ByteLevel")) return byteLevelSpelling;
  if (model === "BPE" || model === "Unigram") {
    const metaspace = named("Metaspace");
    const replaced = decoders.find((decoder) => decoder.type === "Replace" && decoder.content === " ")?.pattern?.String;
    const space = metaspace ? (metaspace.replacement ?? "\u2581") : replaced;
    if (space !== undefined) {
      const dropsFirstSpace = metaspace ? metaspace.prepend_scheme !== "never" : named("Strip") !== undefined;
      return sentencePieceSpelling({ space, byteFallback: named("ByteFallback") !== undefined, dropsFirstSpace });
    }
  }
  throw new TokenizerError(
    "tokenizer/unsupported",
    `The tokenizer of ${name} is ${model ?? "of unknown type"} with decoder ${json.decoder?.type ?? "none"}; what can be used is byte-level BPE ` +
      "(Qwen, Llama 3, gpt-oss, GPT-2) and SentencePiece's BPE and Unigram (Gemma, Llama 2, Phi-3). Choose a model with such a tokenizer.",
  );
}

/** Whether a text that begins a sequence is encoded otherwise than one that goes on after a control token. */
export function joinsFirst(json: TokenizerJson): boolean {
  return flatten(json.pre_tokenizer).some((part) => part.type === "Metaspace" && part.prepend_scheme === "first");
}

/**
 * The model that encodes content. BPE builds its tokens from parts, so it can share the vocabulary of the one that encodes markup, and is
 * made without. Unigram takes any text of its vocabulary, the control tokens too; there they have texts that nobody writes.
 */
export function contentModel(json: TokenizerJson, controls: ReadonlySet<number>): object {
  if (json.model?.type !== "Unigram") return { ...json.model, vocab: {}, merges: [] };
  const vocab = (json.model.vocab as [string, number][]).map(([token, score], id) =>
    controls.has(id) ? [`\u{10FFFF}control ${id}`, score] : [token, score],
  );
  return { ...json.model, vocab };
}
