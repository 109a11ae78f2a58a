// The one tool that takes types out of TypeScript here: esbuild's own program, which needs no install script. Plain JavaScript, for module hooks.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";

let known;

/** Its file; undefined where the package for this machine is not installed. */
export function findEsbuild() {
  try {
    const { resolve } = createRequire(import.meta.url);
    known ??= resolve(`@esbuild/${process.platform}-${process.arch}/bin/esbuild`);
  } catch {
    // It is not there.
  }
  return known;
}

/** What to type to have it. */
export const installEsbuild = "npm install --include=optional";

const flags = ["--loader=ts", "--format=esm", "--target=node20", "--sourcemap=inline", "--color=false"];
const keepImports = `--tsconfig-raw=${JSON.stringify({ compilerOptions: { verbatimModuleSyntax: true } })}`;

/** A module of ours or of a user's as JavaScript, with the map inside, for a Node that reads maps. Throws a SyntaxError that says where. */
export function withoutTypes(path, source) {
  const program = findEsbuild();
  if (program === undefined)
    throw new Error(
      `${path} is TypeScript, and esbuild for ${process.platform}-${process.arch} is missing: ${installEsbuild}`,
    );
  try {
    const options = { input: source, encoding: "utf8", maxBuffer: 1 << 30, stdio: "pipe" };
    return execFileSync(program, [...flags, keepImports, `--sourcefile=${path}`], options);
  } catch (error) {
    const [, what, line, column] = /\[ERROR\] (.*)\n\n .*:(\d+):(\d+):\n/.exec(error.stderr ?? "") ?? [];
    throw what === undefined ? error : new SyntaxError(`${path}:${line}:${Number(column) + 1}: ${what}`);
  }
}
