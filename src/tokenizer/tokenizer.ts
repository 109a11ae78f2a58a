// Text ↔ token ids for one model: what a Hugging Face tokenizer.json describes. Splitting and merging are done by
// @huggingface/tokenizers; bytes → text is done here, because streaming needs the bytes of a token and not its text.
import { Tokenizer as Library } from "@huggingface/tokenizers";
import { BatchEncoder } from "./batch.ts";
import { type ByteTable, DecodeStream, decodeTokens, tokenBytes } from "./decode.ts";
import { TokenizerError } from "./errors.ts";
import { readTokenizerFiles, type TokenizerFiles, type TokenizerPaths } from "./files.ts";
import { contentModel, joinsFirst, spellingOf, type TokenizerJson } from "./formats.ts";

/** How text becomes tokens. */
export interface EncodeOptions {
  /**
   * False (the default): the text is content, and a control token written in it stays plain text. True: it is markup that we
   * wrote ourselves, and `<|im_end|>` becomes the control token. Added tokens that the model's files do not flag as special
   * (`<think>`, `<tool_call>`) are single tokens either way, as in the model's own template.
   */
  special?: boolean;
  /** For content that goes on after a control token: some vocabularies put a space before a text that begins a sequence. */
  continues?: boolean;
}

/** How tokens become text. */
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
  /** `bos_token`, `eos_token` and the like: the texts of the tokens that the model's files name. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** The tokens at which the model's files say that generation ends. */
  readonly endTokens: readonly number[];
  /** The tokens beside the vocabulary: control tokens, and words such as `<think>`. */
  readonly addedTokens: readonly AddedToken[];
  /** The tokens of a text. Control tokens in it are plain text unless `special` is set. */
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
  /** The same tokenizer, for which these added tokens are control tokens too: written in content, they stay plain text. */
  withControlTokens(contents: readonly string[]): Tokenizer;
  /** Ends the worker thread, if a large batch started one; it would not keep the process alive. */
  close(): Promise<void>;
}

/** A token that is matched before the vocabulary is. */
export interface AddedToken {
  /** Its number. */
  id: number;
  /** Its text. */
  content: string;
  /** Flagged as special by the model's files. */
  special: boolean;
  /** The token takes the blanks before it, or after it, with it. */
  lstrip?: boolean;
  /** Whether it takes the white space behind it. */
  rstrip?: boolean;
}

/** Stands before a text that does not begin its sequence; past the vocabulary of every model, and it never leaves this class. */
const startToken: AddedToken = { id: 2 ** 31 - 2, content: "\u{10FFFF}\u{10FFFE}start\u{10FFFF}", special: true };

/** The tokenizer whose files are at `paths`. `controlTokens`: added tokens that are control tokens beside the flagged ones. */
export const openTokenizer = async (
  paths: TokenizerPaths,
  name: string,
  controlTokens?: readonly string[],
): Promise<Tokenizer> => new JsonTokenizer(await readTokenizerFiles(paths, name), controlTokens);

class JsonTokenizer implements Tokenizer {
  readonly name: string;
  readonly vocabSize: number;
  readonly chatTemplate: string | undefined;
  readonly specialTokens: Readonly<Record<string, string>>;
  readonly endTokens: readonly number[];
  readonly addedTokens: readonly AddedToken[];
  readonly #files: TokenizerFiles;
  /** Recognises every added token. */
  readonly #markup: Library;
  /** Recognises the added tokens that are not control tokens; shares the vocabulary and merges of `#markup`. */
  readonly #content: Library;
  readonly #special = new Set<number>();
  readonly #bytes: ByteTable;
  readonly #batches: BatchEncoder;
  readonly #joinsFirst: boolean;

  /** `like`: a tokenizer of the same files, whose vocabulary is shared. */
  constructor(files: TokenizerFiles, controlTokens: readonly string[] = [], like?: JsonTokenizer) {
    this.name = files.name;
    this.#files = files;
    this.chatTemplate = files.chatTemplate;
    const control = new Set(controlTokens);
    const batchFiles = { paths: files.paths, name: files.name, controlTokens: [...control] };
    this.#batches = new BatchEncoder(batchFiles, (text, how) => this.encode(text, how));
    const json = files.tokenizer as TokenizerJson;
    const spelling = spellingOf(json, files.name);
    this.#joinsFirst = joinsFirst(json);
    this.addedTokens = json.added_tokens ?? [];
    for (const { id, special, content } of this.addedTokens) if (special || control.has(content)) this.#special.add(id);
    try {
      this.#markup = like ? like.#markup : new Library({ ...json, added_tokens: this.addedTokens }, files.config);
      const words = this.addedTokens.filter(({ id }) => !this.#special.has(id));
      this.#content = new Library(
        {
          ...json,
          model: contentModel(json, this.#special),
          added_tokens: this.#joinsFirst ? [...words, startToken] : words,
        },
        files.config,
      );
    } catch (error) {
      throw new TokenizerError(
        "tokenizer/bad-file",
        `The tokenizer of ${files.name} could not be built: ${String(error)}. Use the tokenizer.json of a Hugging Face model.`,
        { cause: error },
      );
    }
    const model = this.#markup.model!;
    if (json.model?.type !== "Unigram") this.#content.model = model;
    this.vocabSize = model.vocab.length;
    const addedIds = new Set(this.addedTokens.map((token) => token.id));
    this.#bytes = { tokens: model.vocab, bytes: [], addedIds, spelling };
    this.specialTokens = namedTokens(files.config);
    this.endTokens = this.#findEndTokens();
    this.#refuseLeaks();
  }

  encode(text: string, { special = false, continues = false }: EncodeOptions = {}): number[] {
    if (text === "") return [];
    if (special) return this.#markup.encode(text, { add_special_tokens: false }).ids;
    const goesOn = continues && this.#joinsFirst && !text.includes(startToken.content);
    const { ids } = this.#content.encode(goesOn ? startToken.content + text : text, { add_special_tokens: false });
    return goesOn ? ids.slice(1) : ids;
  }

  encodeBatch(texts: readonly string[], options: EncodeOptions = {}): Promise<Int32Array[]> {
    return this.#batches.encode(texts, options);
  }

  decode(ids: ArrayLike<number>, options: DecodeOptions = {}): string {
    return decodeTokens(this.#bytes, ids, this.#skipped(options));
  }

  decodeStream(options: DecodeOptions = {}): DecodeStream {
    const skipped = this.#skipped(options);
    const bytesOf = (id: number) => (skipped.has(id) ? undefined : tokenBytes(this.#bytes, id));
    return new DecodeStream(bytesOf, this.#bytes.spelling.dropsFirstSpace);
  }

  tokenId(token: string): number | undefined {
    return this.#markup.token_to_id(token);
  }

  isSpecial(id: number): boolean {
    return this.#special.has(id);
  }

  withControlTokens(contents: readonly string[]): Tokenizer {
    return new JsonTokenizer(this.#files, contents, this);
  }

  close(): Promise<void> {
    return this.#batches.close();
  }

  #findEndTokens(): number[] {
    const listed = [this.#files.generation["eos_token_id"]].flat().filter((id) => typeof id === "number");
    const named = this.specialTokens["eos_token"];
    const id = named === undefined ? undefined : this.tokenId(named);
    return [...new Set([...listed, ...(id === undefined ? [] : [id])])];
  }

  #skipped(options: DecodeOptions): ReadonlySet<number> {
    return options.skipSpecial ? this.#special : none;
  }

  /** A problem statement must not be able to end a turn: no control token may come out of plain text. */
  #refuseLeaks(): void {
    // What stands for characters that a vocabulary lacks comes out of plain text by its nature, and ends nothing.
    const unknown = this.#markup.model!.unk_token_id;
    for (const { id, content } of this.addedTokens) {
      if (!this.#special.has(id) || id === unknown || !this.encode(content).includes(id)) continue;
      throw new TokenizerError(
        "tokenizer/control-token-leak",
        `In the tokenizer of ${this.name} the plain text ${JSON.stringify(content)} encodes to the control token ${id}, so a problem ` +
          "statement could end a turn. Use a tokenizer.json whose merges do not build its special tokens.",
      );
    }
  }
}

const none: ReadonlySet<number> = new Set();

/** The tokens that a config names: each is a text, or an object that has one. */
function namedTokens(config: Readonly<Record<string, unknown>>): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const [name, value] of Object.entries(config)) {
    if (!name.endsWith("_token")) continue;
    const text = typeof value === "string" ? value : (value as { content?: unknown } | null)?.content;
    if (typeof text === "string") tokens[name] = text;
  }
  return tokens;
}
