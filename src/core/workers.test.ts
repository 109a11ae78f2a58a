import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { typescriptFlags } from "./workers.ts";

test.each([
  ["--input-type=module"],
  ["--input-type=module", "--no-warnings", "--max-old-space-size=512", "--trace-exit"],
])("a thread starts in a process that was started with %s", (...flags) => {
  const program = `
      import { loadTokenizer } from ${JSON.stringify(new URL("../tokenizer/index.ts", import.meta.url).href)};
      const tokenizer = await loadTokenizer("nano-coder");
      console.log((await tokenizer.encodeBatch(Array(3000).fill("def f(x): return x"))).length);`;
  const { stdout, stderr } = spawnSync(process.execPath, [...typescriptFlags, ...flags, "--eval", program], {
    encoding: "utf8",
  });
  expect(stdout, stderr).toBe("3000\n");
});
