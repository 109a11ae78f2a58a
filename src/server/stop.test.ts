import fc from "fast-check";
import { expect, test } from "vitest";
import { loadTokenizer } from "../tokenizer/index.ts";
import { modelText, stopAtStrings } from "./stop.ts";

const tokenizer = await loadTokenizer("models/nano-coder");
const { decode, controlToken } = modelText(tokenizer);
const controls = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"].map((text) => tokenizer.tokenId(text)!);

/** After how many tokens a sample would end; undefined: never. */
function endOf(tokens: readonly number[], stops: readonly string[]): number | undefined {
  const shouldStop = stopAtStrings(stops, decode);
  const end = tokens.findIndex((_, index) => shouldStop(tokens.slice(0, index + 1)));
  return end < 0 ? undefined : end + 1;
}

test.each([
  ["inside a control token", "im_end"],
  ["from text into a control token", "x = 1<|im"],
  ["from a control token into text", "end|>\n"],
  ["across a control token", "1<|im_end|>\nd"],
  ["from one control token into the next", "|><|"],
])("a stop string %s is found", (_, stop) => {
  const [end, start] = [controlToken!("<|im_end|>")!, controlToken!("<|im_start|>")!];
  const tokens = [
    ...tokenizer.encode("x = 1"),
    end,
    ...tokenizer.encode("\ndef f"),
    start,
    start,
    ...tokenizer.encode("done"),
  ];
  const text = decode(tokens);
  expect(text).toContain(stop);
  const length = endOf(tokens, ["not in there", stop]);
  expect(decode(tokens.slice(0, length))).toContain(stop);
  expect(decode(tokens.slice(0, length! - 1))).not.toContain(stop);
});

test("a sample ends with the first token after which its text holds a stop string, whatever the tokens", () => {
  const token = fc.oneof({ weight: 4, arbitrary: fc.nat(511) }, { weight: 1, arbitrary: fc.constantFrom(...controls) });
  fc.assert(
    fc.property(
      fc.array(token, { minLength: 1, maxLength: 60 }),
      fc.nat(),
      fc.integer({ min: 1, max: 14 }),
      (tokens, at, length) => {
        const text = decode(tokens);
        const start = at % text.length;
        const stop = text.slice(start, start + length);
        // Half a character is no text that a client could have sent.
        fc.pre(!/[\ud800-\udfff\ufffd]/u.test(stop));
        const first = tokens.findIndex((_, index) => decode(tokens.slice(0, index + 1)).includes(stop)) + 1;
        expect(endOf(tokens, [stop])).toBe(first);
      },
    ),
    { numRuns: 300 },
  );
});
