// The tokenizer of a GGUF file as the tokenizer.json and tokenizer_config.json that the model would have on the Hugging Face hub.
import { badFile, GgufError } from "./errors.ts";
import type { GgufFile } from "./file.ts";

/** A token that is matched before the vocabulary is: the file's types 3, which are control tokens, and 4. */
const controlType = 3;
const addedTypes = new Set([controlType, 4]);

export interface TokenizerParts {
  "tokenizer.json": Record<string, unknown>;
  "tokenizer_config.json": Record<string, unknown>;
  "generation_config.json": Record<string, unknown>;
}

export function tokenizerOf(file: GgufFile): TokenizerParts {
  const get = (key: string) => file.metadata.get(`tokenizer.ggml.${key}`);
  const list = <T>(key: string, type: "string" | "number"): T[] | undefined => {
    const value = get(key);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === type)) return value as T[];
    throw badFile(file.path, `has tokenizer.ggml.${key} of another kind than a list of ${type}s`);
  };
  const tokens = list<string>("tokens", "string");
  if (!tokens) throw badFile(file.path, "has no tokens");
  const types = list<number>("token_type", "number") ?? [];
  const special = (kind: string) => {
    const id = get(`${kind}_token_id`);
    return typeof id === "number" ? { id, token: tokens[id] } : undefined;
  };
  const [bos, eos, turn] = [special("bos"), special("eos"), special("eot")];
  const added = tokens.flatMap((content, id) =>
    addedTypes.has(types[id] ?? 1)
      ? [
          {
            id,
            content,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special: types[id] === controlType,
          },
        ]
      : [],
  );
  const make = kinds[String(get("model"))];
  if (!make) throw unsupported(file, `tokenizer.ggml.model=${String(get("model"))}`);
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  const rest = make({
    file,
    tokens,
    vocab,
    pre: String(get("pre") ?? "default"),
    merges: list<string>("merges", "string")?.map((pair) => pair.split(" ")),
    scores: list<number>("scores", "number"),
    unknown: special("unknown")?.token,
    addsSpace: get("add_space_prefix") !== false,
  });
  const template = file.metadata.get("tokenizer.chat_template");
  return {
    "tokenizer.json": {
      version: "1.0",
      truncation: null,
      padding: null,
      added_tokens: added,
      post_processor: null,
      ...rest,
    },
    "tokenizer_config.json": {
      tokenizer_class: "PreTrainedTokenizerFast",
      ...(bos && { bos_token: bos.token }),
      ...(eos && { eos_token: eos.token }),
      ...(special("padding") && { pad_token: special("padding")!.token }),
      ...(template !== undefined && { chat_template: template }),
      clean_up_tokenization_spaces: false,
    },
    "generation_config.json": {
      eos_token_id: [...new Set([eos, turn].flatMap((token) => (token ? [token.id] : [])))],
    },
  };
}

interface Vocabulary {
  file: GgufFile;
  tokens: readonly string[];
  vocab: Readonly<Record<string, number>>;
  /** The name of the pre-tokenizer, which cuts a text into words. */
  pre: string;
  merges: string[][] | undefined;
  scores: number[] | undefined;
  unknown: string | undefined;
  addsSpace: boolean;
}

/** By tokenizer.ggml.model. */
const kinds: Readonly<Record<string, (vocabulary: Vocabulary) => Record<string, unknown>>> = {
  gpt2: byteLevel,
  llama: sentencePiece,
};

const model = { type: "BPE", dropout: null, continuing_subword_prefix: null, end_of_word_suffix: null };

function byteLevel({ file, vocab, pre, merges }: Vocabulary): Record<string, unknown> {
  const rule = preTokenizers[pre];
  if (!rule) throw unsupported(file, `tokenizer.ggml.pre=${pre}`);
  if (!merges) throw badFile(file.path, "has no merges");
  const byteLevelPart = { type: "ByteLevel", add_prefix_space: false, trim_offsets: false };
  return {
    normalizer: rule.normalizer ? { type: rule.normalizer } : null,
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        ...rule.before,
        { ...byteLevelPart, use_regex: rule.before.every(({ type }) => type !== "Split") },
      ],
    },
    decoder: { ...byteLevelPart, use_regex: true },
    model: {
      ...model,
      unk_token: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: rule.whole ?? false,
      vocab,
      merges,
    },
  };
}

const split = (regex: string) => ({ type: "Split", pattern: { Regex: regex }, behavior: "Isolated", invert: false });
const qwen =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const llama3 = qwen.replace("\\p{N}|", "\\p{N}{1,3}|");

interface Rule {
  /** What cuts before bytes are spelled; without a Split, GPT-2's rule does. */
  before: { type: string }[];
  normalizer?: string;
  /** A word of the vocabulary is one token, whatever the merges would make of it. */
  whole?: boolean;
}

/** How a text is cut into words before it is merged, by tokenizer.ggml.pre; as in the tokenizer.json of these models. */
const preTokenizers: Readonly<Record<string, Rule>> = {
  default: { before: [] },
  "gpt-2": { before: [] },
  smollm: { before: [{ type: "Digits", individual_digits: true } as { type: string }] },
  qwen2: { before: [split(qwen)], normalizer: "NFC" },
  "llama-bpe": { before: [split(llama3)], whole: true },
};

/** Llama 2, Mistral and TinyLlama: pieces with scores, merged in the order of the scores of what comes out. */
function sentencePiece({ file, tokens, vocab, scores, unknown, addsSpace }: Vocabulary): Record<string, unknown> {
  if (!scores) throw badFile(file.path, "has no scores");
  const space = "\u2581";
  const merges: { pair: [string, string]; score: number; order: number }[] = [];
  for (const [id, piece] of tokens.entries())
    for (let cut = 1; cut < piece.length; cut++) {
      const pair: [string, string] = [piece.slice(0, cut), piece.slice(cut)];
      if (pair.every((part) => Object.hasOwn(vocab, part)))
        merges.push({ pair, score: scores[id]!, order: merges.length });
    }
  merges.sort((a, b) => b.score - a.score || a.order - b.order);
  return {
    normalizer: {
      type: "Sequence",
      normalizers: [
        ...(addsSpace ? [{ type: "Prepend", prepend: space }] : []),
        { type: "Replace", pattern: { String: " " }, content: space },
      ],
    },
    pre_tokenizer: null,
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: space }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        ...(addsSpace ? [{ type: "Strip", content: " ", start: 1, stop: 0 }] : []),
      ],
    },
    model: {
      ...model,
      unk_token: unknown ?? null,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab,
      merges: merges.map(({ pair }) => pair),
    },
  };
}

function unsupported(file: GgufFile, what: string): GgufError {
  return new GgufError(
    "gguf/unsupported",
    `${file.path} has ${what}, a tokenizer that is not known here. Set tokenizer= to the model's own (a folder or a hub id), or use its safetensors.`,
  );
}
