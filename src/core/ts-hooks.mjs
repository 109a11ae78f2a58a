// Module hooks: turn a .ts file into JavaScript with esbuild when it is imported. Results are cached by content, so a second
// start reads files and compiles nothing.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const cacheDir = fileURLToPath(new URL("../../node_modules/.cache/whetstone/ts/", import.meta.url));

export async function load(url, context, nextLoad) {
  if (!url.startsWith("file:") || !new URL(url).pathname.endsWith(".ts")) return nextLoad(url, context);
  const path = fileURLToPath(url);
  const source = readFileSync(path, "utf8");
  const cached = `${cacheDir}${createHash("sha1").update(path).update("\0").update(source).digest("hex")}.mjs`;
  let code;
  try {
    code = readFileSync(cached, "utf8");
  } catch {
    const { transformSync } = require("esbuild");
    code = transformSync(source, {
      loader: "ts",
      format: "esm",
      target: "node20",
      sourcemap: "inline",
      sourcefile: path,
      tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
    }).code;
    try {
      mkdirSync(cacheDir, { recursive: true });
      const temporary = `${cached}.${process.pid}`;
      writeFileSync(temporary, code);
      renameSync(temporary, cached);
    } catch {
      // A read-only checkout works too, only slower.
    }
  }
  return { format: "module", source: code, shortCircuit: true };
}
