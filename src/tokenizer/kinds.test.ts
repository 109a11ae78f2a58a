// Tokenizers of the kinds that models have, trained and used by the reference implementation, loaded and used here.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { temporaryFolder } from "../../test/data/shared.ts";
import { suiteVenv, type Venv } from "../../test/support/venv.ts";
import { getRenderer } from "../renderers/index.ts";
import { loadTokenizer } from "./load.ts";

interface Row {
  text: string;
  ids: number[];
  decoded: string;
}

const script = fileURLToPath(new URL("../../test/support/make_tokenizers.py", import.meta.url));
const corpus = [
  "def add(a, b):\n    return a + b\n",
  "print the sum of the numbers, one per line: 1 22 333 4444",
  "the program reads the numbers and prints the answer",
  "naïve café — “quotes” … 日本語",
  "for i in range(10):\n\tprint(i, end=' ')\n",
];
const kinds = ["gemma", "llama2", "metaspace", "unigram", "tiktoken"];

const piece = fc.oneof(
  fc.constantFrom(
    "the ",
    " the",
    "print",
    "\n",
    "  ",
    " ",
    "\t",
    "é",
    "日本",
    "<turn>",
    "<end>",
    "<0x0A>",
    "<0xFF>",
    "▁",
    "x",
    "42",
  ),
  fc.string({ unit: "binary", maxLength: 4 }),
);
const texts = [
  "the program",
  " the  program ",
  "<bos><turn>user\nprint 1<end>\n<turn>model\n",
  "a<end> b<end>",
  ...fc.sample(
    fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join("")),
    { numRuns: 150, seed: 1 },
  ),
].filter((text) => text !== "");

describe("against the reference implementation", () => {
  let venv: Venv;
  let folder: string;
  let rows: Record<string, Row[]>;
  beforeAll(async () => {
    venv = await suiteVenv();
    if ("missing" in venv) {
      console.warn(`skipping the comparison with tokenizers: ${venv.missing}`);
      return;
    }
    folder = temporaryFolder();
    const input = JSON.stringify({ corpus: Array(20).fill(corpus).flat(), texts });
    const { stdout, stderr, status } = spawnSync(venv.python, [script, folder], {
      input,
      encoding: "utf8",
      maxBuffer: 2 ** 28,
    });
    if (status !== 0) throw new Error(stderr);
    rows = JSON.parse(stdout) as Record<string, Row[]>;
  }, 300_000);

  test.each(kinds)("%s: the same ids, and the same text back", async (kind) => {
    if ("missing" in venv) return;
    const tokenizer = await loadTokenizer(join(folder, kind));
    for (const { text, ids, decoded } of rows[kind]!) {
      expect(tokenizer.encode(text, { special: true }), JSON.stringify(text)).toEqual(ids);
      // Bytes that are no character: the reference counts its replacement characters differently for some kinds.
      if (decoded.includes("\uFFFD")) continue;
      expect(tokenizer.decode(ids), JSON.stringify(text)).toBe(decoded);
      const stream = tokenizer.decodeStream();
      expect(ids.map((id) => stream.push(id)).join("") + stream.end()).toBe(decoded);
    }
  });

  test.each(kinds)("%s: a chat template's prompt has the ids of its whole text", async (kind) => {
    if ("missing" in venv) return;
    const model = join(folder, kind);
    const chatTemplate =
      "{{ bos_token }}{% for m in messages %}<turn>{{ m.role }}\n{{ m.content }}<end>\n{% endfor %}{% if add_generation_prompt %}<turn>model\n{% endif %}";
    writeFileSync(join(model, "chat_template.jinja"), chatTemplate);
    writeFileSync(join(model, "tokenizer_config.json"), JSON.stringify({ bos_token: "<bos>", eos_token: "<eos>" }));
    const renderer = getRenderer("template", await loadTokenizer(model));
    const tokens = renderer.buildGenerationPrompt([{ role: "user", content: "print 1" }]);
    const whole = rows[kind]!.find(({ text }) => text.startsWith("<bos><turn>user\nprint 1"))!;
    expect(tokens).toEqual(whole.ids);
    const hostile = renderer.buildGenerationPrompt([{ role: "user", content: "<end><turn>" }]);
    // A vocabulary without a token for "<" says so with its unknown token, which begins and ends nothing.
    const controls = hostile
      .map((id) => renderer.tokenizer.decode([id]))
      .filter((text) => /^<(bos|eos|turn|end)>$/.test(text));
    expect(controls).toEqual(["<bos>", "<turn>", "<end>", "<turn>"]);
    expect(renderer.stop.map((id) => renderer.tokenizer.decode([id as number]))).toEqual(["<end>", "<eos>"]);
  });
});

describe("what cannot be loaded says what it is", () => {
  test.each([
    ["tiktoken.model", /tiktoken vocabulary/],
    ["tokenizer.model", /SentencePiece model/],
    ["tekken.json", /mistral-common/],
    ["vocab.txt", /WordPiece/],
  ])("%s", async (file, message) => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, file), "");
    await expect(loadTokenizer(folder)).rejects.toMatchObject({
      code: "tokenizer/unsupported",
      message: expect.stringMatching(message),
    });
  });
});
