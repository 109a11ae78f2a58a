import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { startHub } from "../../test/data/hub-stand-in.ts";
import { golden, qwen3Folder, sharedIsThere, temporaryFolder } from "../../test/data/shared.ts";
import { tinyTokenizerFolder } from "../../test/data/tiny-tokenizer.ts";
import { Hub } from "../hub/hub.ts";
import { loadTokenizer } from "./load.ts";
import type { Tokenizer } from "./tokenizer.ts";

fc.configureGlobal({ seed: 1 });

interface Vector {
  kind: string;
  text: string;
  ids: number[];
  decoded?: string;
  decoded_skip_special?: string;
}

let tiny: Tokenizer;
beforeAll(async () => {
  tiny = await loadTokenizer(tinyTokenizerFolder());
});

const utf16 = fc.string({ unit: "binary", maxLength: 200 });

describe("with a small tokenizer", () => {
  test("decode(encode(x)) is x", () => {
    fc.assert(
      fc.property(utf16, fc.boolean(), (text, special) => {
        expect(tiny.decode(tiny.encode(text, { special }))).toBe(text);
      }),
    );
  });

  test("a control token in content stays plain text; in markup it is one token", () => {
    const end = tiny.tokenId("<|im_end|>")!;
    expect(tiny.encode("a<|im_end|>b")).not.toContain(end);
    expect(tiny.decode(tiny.encode("a<|im_end|>b"))).toBe("a<|im_end|>b");
    expect(tiny.encode("<|im_end|>", { special: true })).toEqual([end]);
    fc.assert(
      fc.property(utf16, utf16, (before, after) => {
        expect(tiny.encode(`${before}<|im_end|>${after}`).some((id) => tiny.isSpecial(id))).toBe(false);
      }),
    );
  });

  test("added tokens that are not flagged special are single tokens in content, and are not skipped", () => {
    const think = tiny.tokenId("<think>")!;
    expect(tiny.encode("<think>")).toEqual([think]);
    expect(tiny.decode([think, tiny.tokenId("<|im_end|>")!], { skipSpecial: true })).toBe("<think>");
  });

  test("the pieces of a decode stream joined are the decoded whole, whatever the ids", () => {
    const ids = fc.array(fc.integer({ min: 0, max: tiny.vocabSize + 5 }), { maxLength: 60 });
    fc.assert(
      fc.property(ids, fc.boolean(), (sequence, skipSpecial) => {
        const stream = tiny.decodeStream({ skipSpecial });
        const pieces = sequence.map((id) => stream.push(id));
        expect(pieces.join("") + stream.end()).toBe(tiny.decode(sequence, { skipSpecial }));
      }),
    );
  });

  test("a stream gives no half character", () => {
    const stream = tiny.decodeStream();
    const pieces = tiny.encode("é✓𝄞").map((id) => stream.push(id));
    expect(pieces.filter((piece) => piece !== "")).toEqual(["é", "✓", "𝄞"]);
    expect(stream.end()).toBe("");
  });

  test("an id without a token decodes to nothing, and an empty list to the empty text", () => {
    expect(tiny.decode([tiny.vocabSize + 100])).toBe("");
    expect(tiny.decode([])).toBe("");
    expect(tiny.encode("")).toEqual([]);
    expect(tiny.tokenId("no such token")).toBeUndefined();
  });

  test("typed arrays decode as well", () => {
    expect(tiny.decode(Int32Array.from(tiny.encode("the print")))).toBe("the print");
  });
});

describe("batches", () => {
  test("small and large ones give what encode gives", async () => {
    for (const repeat of [1, 4000]) {
      const texts = ["", "the print <|im_end|>", "é✓𝄞".repeat(repeat), "def f():\n".repeat(repeat)];
      for (const special of [false, true]) {
        const batch = await tiny.encodeBatch(texts, { special });
        expect(batch.map((ids) => Array.from(ids))).toEqual(texts.map((text) => tiny.encode(text, { special })));
      }
    }
    await tiny.close();
    // A closed tokenizer starts its thread again when it is needed.
    expect(await tiny.encodeBatch(["the ".repeat(10_000)])).toHaveLength(1);
    await tiny.close();
  });

  test("the event loop turns while a large batch is encoded", async () => {
    let turns = 0;
    const counter = setInterval(() => turns++, 1);
    await tiny.encodeBatch(["print the definition\n".repeat(50_000)]);
    clearInterval(counter);
    await tiny.close();
    expect(turns).toBeGreaterThan(5);
  });

  test("files that are gone fail the batch with a name, not the process", async () => {
    const folder = tinyTokenizerFolder();
    const tokenizer = await loadTokenizer(folder);
    rmSync(folder, { recursive: true });
    await expect(tokenizer.encodeBatch(["x".repeat(20_000)])).rejects.toMatchObject({ code: "tokenizer/batch-failed" });
    await tokenizer.close();
  });
});

describe("from the hub", () => {
  test("a model's name is enough, and its template comes along", async () => {
    const folder = tinyTokenizerFolder({ chatTemplate: "{{ messages }}" });
    const files = Object.fromEntries(
      ["tokenizer.json", "chat_template.jinja"].map((name) => [name, readFileSync(join(folder, name))]),
    );
    const standIn = await startHub([
      { name: "models/owner/tiny", files: { ...files, "config.json": "{}" } },
      { name: "models/owner/none", files: { "config.json": "{}" } },
    ]);
    const hub = new Hub({ endpoint: standIn.endpoint, cacheFolder: temporaryFolder() });
    const tokenizer = await loadTokenizer("owner/tiny", { hub });
    expect(tokenizer.encode("the")).toEqual(tiny.encode("the"));
    expect(tokenizer.chatTemplate).toBe("{{ messages }}");
    for (const variant of ["owner/tiny:peft:131072", "owner/tiny/long"])
      expect((await loadTokenizer(variant, { hub })).encode("a b")).toEqual(tokenizer.encode("a b"));
    await expect(loadTokenizer("owner/none", { hub })).rejects.toMatchObject({ code: "tokenizer/not-found" });
    await standIn.close();
    // Also without a network, and its batch thread finds the files in the cache.
    const again = await loadTokenizer("owner/tiny", {
      hub: new Hub({ endpoint: standIn.endpoint, cacheFolder: hub.cacheFolder, retryDelayMs: 1 }),
    });
    expect(await again.encodeBatch(["the".repeat(10_000)])).toHaveLength(1);
    await again.close();
  });

  test("what is neither a path nor a hub id is refused", async () => {
    await expect(loadTokenizer("nano-codr")).rejects.toMatchObject({
      code: "tokenizer/not-found",
      message: expect.stringContaining('"nano-codr"'),
    });
  });
});

describe("what is refused", () => {
  test("a tokenizer whose merges build a control token from plain text", async () => {
    await expect(loadTokenizer(tinyTokenizerFolder({ mergeSpecial: true }))).rejects.toMatchObject({
      code: "tokenizer/control-token-leak",
      message: expect.stringContaining('"<|im_end|>"'),
    });
  });

  test("a folder without tokenizer.json", async () => {
    const folder = temporaryFolder();
    await expect(loadTokenizer(folder)).rejects.toMatchObject({
      code: "tokenizer/not-found",
      message: expect.stringContaining(folder),
    });
  });

  test("a file that is not JSON", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "tokenizer.json"), '{"model": ');
    await expect(loadTokenizer(folder)).rejects.toMatchObject({ code: "tokenizer/bad-file" });
  });

  test("a kind of tokenizer that is not for language models", async () => {
    const folder = temporaryFolder();
    writeFileSync(
      join(folder, "tokenizer.json"),
      JSON.stringify({ model: { type: "WordPiece" }, decoder: { type: "WordPiece" } }),
    );
    await expect(loadTokenizer(folder)).rejects.toMatchObject({
      code: "tokenizer/unsupported",
      message: expect.stringContaining("WordPiece"),
    });
  });
});

describe.skipIf(!sharedIsThere)("with Qwen3's tokenizer", () => {
  let qwen: Tokenizer;
  beforeAll(async () => {
    qwen = await loadTokenizer(qwen3Folder());
  });

  test("every published vector", () => {
    const vectors = golden<Vector>("published_vectors").filter((vector) => vector.ids !== undefined);
    expect(vectors.length).toBeGreaterThan(70);
    for (const vector of vectors) {
      expect(qwen.encode(vector.text, { special: true })).toEqual(vector.ids);
      if (vector.decoded !== undefined) expect(qwen.decode(vector.ids)).toBe(vector.decoded);
    }
  });

  test("every generated tokenize and decode vector", () => {
    for (const vector of golden<Vector>("generated_tokenize")) {
      expect(qwen.encode(vector.text, { special: true })).toEqual(vector.ids);
      expect(qwen.decode(vector.ids)).toBe(vector.decoded);
      expect(qwen.decode(vector.ids, { skipSpecial: true })).toBe(vector.decoded_skip_special);
    }
    for (const vector of golden<Vector>("generated_decode")) {
      expect(qwen.decode(vector.ids)).toBe(vector.decoded);
      expect(qwen.decode(vector.ids, { skipSpecial: true })).toBe(vector.decoded_skip_special);
      const stream = qwen.decodeStream();
      expect(vector.ids.map((id) => stream.push(id)).join("") + stream.end()).toBe(vector.decoded);
    }
  });

  test("decode(encode(x)) is x in Unicode normal form C, which this tokenizer applies", () => {
    fc.assert(
      fc.property(utf16, fc.boolean(), (text, special) => {
        expect(qwen.decode(qwen.encode(text, { special })).normalize("NFC")).toBe(text.normalize("NFC"));
      }),
    );
  });

  test("the chat template and the vocabulary size come from the files", () => {
    expect(qwen.chatTemplate).toContain("<|im_start|>");
    expect(qwen.vocabSize).toBe(151669);
  });
});
