// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is what .env files hold.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { temporaryFolders } from "../../../test/support/folders.ts";
import { readEnvText } from "./env-text.ts";
import { loadEnvironmentFile } from "./environment.ts";

const folders = temporaryFolders();
const read = (text: string, known: Record<string, string> = {}) => {
  const { values, problems } = readEnvText(text, (name) => known[name]);
  return { ...Object.fromEntries(values), problems };
};

describe("as people write it", () => {
  test.each([
    ["plain", "A=1", { A: "1" }],
    ["a byte-order mark", "\uFEFFTINKER_API_KEY=tml-1", { TINKER_API_KEY: "tml-1" }],
    ["CRLF", "A=1\r\nB=2\r\n", { A: "1", B: "2" }],
    ["old Mac line ends", "A=1\rB=2", { A: "1", B: "2" }],
    ["export", "export A=1\nexport  B = 2", { A: "1", B: "2" }],
    ["double quotes", 'A="two words" # why', { A: "two words" }],
    ["single quotes", "A='x # y ${B} \\n'", { A: "x # y ${B} \\n" }],
    ["backticks", 'A=`say "hi"`', { A: 'say "hi"' }],
    ["escapes in double quotes", 'A="a\\nb\\t\\"c\\" \\\\ \\d"', { A: 'a\nb\t"c" \\ \\d' }],
    ["comments", "# one\n  # two\nA=1 # three\nB=a#b", { A: "1", B: "a#b" }],
    ["an empty value", "A=\nB=  # nothing", { A: "", B: "" }],
    ["an equals sign in the value", "A=b=c==", { A: "b=c==" }],
    ["blanks around the name", "  A = 1", { A: "1" }],
    ["several lines in quotes", 'A="one\ntwo"\nB=3', { A: "one\ntwo", B: "3" }],
    ["the last one wins", "A=1\nA=2", { A: "2" }],
    ["a reference", "HOST=box\nURL=http://${HOST}:8080/", { URL: "http://box:8080/" }],
    ["a reference in double quotes", 'HOST=box\nURL="http://${HOST}/"', { URL: "http://box/" }],
    ["a reference to what is set", "URL=${HOST}", { URL: "set" }],
    ["a reference to nothing", "URL=${NOWHERE}x", { URL: "x" }],
    ["a reference with a default", "URL=${NOWHERE:-http://here}", { URL: "http://here" }],
    ["a dollar sign in a key", "PASSWORD=pa$word$1", { PASSWORD: "pa$word$1" }],
    ["an escaped reference", 'A="\\${HOST}"', { A: "${HOST}" }],
  ])("%s", (_, text, expected) => {
    const known: Record<string, string> = text.includes("HOST=") ? {} : { HOST: "set" };
    expect(read(text, known)).toMatchObject({ ...expected, problems: [] });
  });
});

test("a line that sets nothing is named by its number, never by what it holds", () => {
  const { problems, ...values } = read("A=1\nsk-secret-key\n=sk-secret\nmy key=sk-secret\nB='sk-secret\nC=2");
  expect(problems.map(({ line }) => line)).toEqual([2, 3, 4, 5]);
  expect(JSON.stringify(problems)).not.toContain("secret");
  expect(values).toEqual({ A: "1", C: "2" });
});

test("any value survives single quotes, and any text is read without an error", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (value) => {
      const plain = value.replaceAll(/['\r\0\uFEFF]/g, "");
      expect(read(`A='${plain}'`)).toMatchObject({ A: plain, problems: [] });
      readEnvText(value);
    }),
  );
});

test("the file of the working directory; variables that are set win; warnings and errors hold no value", () => {
  const folder = folders();
  const other = folders();
  mkdirSync(join(folder, "sub"));
  writeFileSync(join(folder, ".env"), "\uFEFFA=file\nB=file\nsk-secret\n");
  writeFileSync(join(other, ".env"), "C=other");
  const environment: NodeJS.ProcessEnv = { B: "set" };
  const warnings: string[] = [];
  loadEnvironmentFile((message) => warnings.push(message), [join(folder, "sub"), folder, other], environment);
  expect(environment).toEqual({ A: "file", B: "set" });
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(/\.env, line 3 has no "="/);
  expect(warnings[0]).not.toContain("secret");

  writeFileSync(join(other, ".env"), Buffer.from("\uFEFFKEY=sk-secret", "utf16le"));
  const load = () => loadEnvironmentFile(() => {}, [other], {});
  expect(load).toThrow(expect.objectContaining({ code: "config/env-file", message: expect.stringMatching(/UTF-16/) }));
  expect(load).not.toThrow(/secret/);
});
