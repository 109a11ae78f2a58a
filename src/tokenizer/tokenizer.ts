// Text ↔ token ids for one model: byte-level BPE described by a Hugging Face tokenizer.json. Splitting and merging are done by
// @huggingface/tokenizers; bytes → text is done here, because streaming needs the bytes of a token and not its text.
import { Tokenizer as Library } from "@huggingface/tokenizers";
import { BatchEncoder } from "./batch.ts";
import { type ByteTable, DecodeStream, decodeTokens, tokenBytes } from "./decode.ts";
import { TokenizerError } from "./errors.ts";
import type { TokenizerFiles } from "./files.ts";

export interface EncodeOptions {
  /**
   * False (the default): the text is content, and a control token written in it stays plain text. True: it is markup that we
   * wrote ourselves, and `<|im_end|>` becomes the control token. Added tokens that the model's files do not flag as special
   * (`<think>`, `<tool_call>`) are single tokens either way, as in the model's own template.
   */
  special?: boolean;
}

export interface DecodeOptions {
  /** Leave out the tokens that the model's files flag as special. Default false. */
  skipSpecial?: boolean;
}

/** The tokenizer of one model. */
export interface Tokenizer {
  /** Where it was loaded from. */
  readonly name: string;
  /** One past the largest id. A model may have more rows than this, as padding; such an id decodes to nothing. */
  readonly vocabSize: number;
  /** The model's own chat template (Jinja), where its files have one. */
  readonly chatTemplate: string | undefined;
  encode(text: string, options?: EncodeOptions): number[];
  /** The same for many texts; a large batch is encoded in a worker thread, so that the event loop goes on. */
  encodeBatch(texts: readonly string[], options?: EncodeOptions): Promise<Int32Array[]>;
  /** Bytes that are not valid UTF-8 become U+FFFD. */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string;
  /** Decodes token by token: no half characters, and the pieces joined are what `decode` returns. */
  decodeStream(options?: DecodeOptions): DecodeStream;
  /** The id of a token by its text, e.g. "<|im_end|>". */
  tokenId(token: string): number | undefined;
  /** True for the tokens that the model's files flag as special. */
  isSpecial(id: number): boolean;
  /** Ends the worker thread, if a large batch started one; it would not keep the process alive. */
  close(): Promise<void>;
}

interface AddedToken {
  id: number;
  content: string;
  special: boolean;
}

/** The parts of tokenizer.json that are looked at here; the library reads the rest. */
interface TokenizerJson {
  added_tokens?: AddedToken[];
  decoder?: { type?: string; decoders?: { type?: string }[] } | null;
  model?: { type?: string };
}

export class ByteLevelTokenizer implements Tokenizer {
  readonly name: string;
  readonly vocabSize: number;
  readonly chatTemplate: string | undefined;
  /** Recognises every added token. */
  readonly #markup: Library;
  /** Recognises the added tokens that are not flagged as special; shares the vocabulary and merges of `#markup`. */
  readonly #content: Library;
  readonly #special = new Set<number>();
  readonly #bytes: ByteTable;
  readonly #batches: BatchEncoder;

  constructor(files: TokenizerFiles) {
    this.name = files.name;
    this.chatTemplate = files.chatTemplate;
    this.#batches = new BatchEncoder(files.paths, files.name, (text, options) => this.encode(text, options));
    const json = files.tokenizer as TokenizerJson;
    checkSupported(json, files.name);
    const added = json.added_tokens ?? [];
    try {
      this.#markup = new Library({ ...json, added_tokens: added }, files.config);
      const noVocabulary = { ...json.model, vocab: {}, merges: [] };
      const notSpecial = added.filter((token) => !token.special);
      this.#content = new Library({ ...json, model: noVocabulary, added_tokens: notSpecial }, files.config);
    } catch (error) {
      throw new TokenizerError(
        "tokenizer/bad-file",
        `The tokenizer of ${files.name} could not be built: ${String(error)}. Use the tokenizer.json of a Hugging Face model.`,
        { cause: error },
      );
    }
    const model = this.#markup.model!;
    this.#content.model = model;
    for (const token of added) if (token.special) this.#special.add(token.id);
    this.vocabSize = model.vocab.length;
    this.#bytes = { tokens: model.vocab, bytes: [], addedIds: new Set(added.map((token) => token.id)) };
    this.#refuseLeaks(added);
  }

  encode(text: string, { special = false }: EncodeOptions = {}): number[] {
    if (text === "") return [];
    return (special ? this.#markup : this.#content).encode(text, { add_special_tokens: false }).ids;
  }

  encodeBatch(texts: readonly string[], options: EncodeOptions = {}): Promise<Int32Array[]> {
    return this.#batches.encode(texts, options);
  }

  decode(ids: ArrayLike<number>, options: DecodeOptions = {}): string {
    return decodeTokens(this.#bytes, ids, this.#skipped(options));
  }

  decodeStream(options: DecodeOptions = {}): DecodeStream {
    const skipped = this.#skipped(options);
    return new DecodeStream((id) => (skipped.has(id) ? undefined : tokenBytes(this.#bytes, id)));
  }

  tokenId(token: string): number | undefined {
    return this.#markup.token_to_id(token);
  }

  isSpecial(id: number): boolean {
    return this.#special.has(id);
  }

  close(): Promise<void> {
    return this.#batches.close();
  }

  #skipped(options: DecodeOptions): ReadonlySet<number> {
    return options.skipSpecial ? this.#special : none;
  }

  /** A problem statement must not be able to end a turn: no special token may come out of plain text. */
  #refuseLeaks(added: readonly AddedToken[]): void {
    for (const { id, content, special } of added) {
      if (!special || !this.encode(content).includes(id)) continue;
      throw new TokenizerError(
        "tokenizer/control-token-leak",
        `In the tokenizer of ${this.name} the plain text ${JSON.stringify(content)} encodes to the control token ${id}, so a problem ` +
          "statement could end a turn. Use a tokenizer.json whose merges do not build its special tokens.",
      );
    }
  }
}

const none: ReadonlySet<number> = new Set();

function checkSupported(json: TokenizerJson, name: string): void {
  const decoders = json.decoder?.type === "Sequence" ? (json.decoder.decoders ?? []) : [json.decoder];
  if (json.model?.type === "BPE" && decoders.some((decoder) => decoder?.type === "ByteLevel")) return;
  throw new TokenizerError(
    "tokenizer/unsupported",
    `The tokenizer of ${name} is ${json.model?.type ?? "of unknown type"} with decoder ${json.decoder?.type ?? "none"}; only byte-level ` +
      "BPE is supported (Qwen, Llama 3, GPT-2 and most code models). Choose a model with such a tokenizer.",
  );
}
