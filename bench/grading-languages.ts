// Rows of `./whet bench grading`: the same program in each language that this machine has, in the jail and as the bare runtime or binary, in turns.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LanguageName, languageNames, languageOf, toolsOf } from "../src/core/languages/languages.ts";
import type { Jail } from "../src/sandbox/jail.ts";
import { defaultLimits } from "../src/sandbox/sandbox.ts";
import { median } from "./intervals.ts";

const rounds = 5;
const batches = 4;
const testsPerBatch = 24;
const least = 0.8;
const limits = { ...defaultLimits, wallMs: 60_000, cpuMs: 60_000 };

/** How anybody compiles the program, and starts it. */
const plainly: Partial<Record<LanguageName, { file: string; compile?: string[]; start: string[] }>> = {
  javascript: { file: "solution.cjs", start: [process.execPath, "solution.cjs"] },
  cpp: { file: "solution.cpp", compile: ["g++", "-O2", "solution.cpp", "-o", "program"], start: ["./program"] },
  rust: { file: "solution.rs", compile: ["rustc", "-O", "solution.rs", "-o", "program"], start: ["./program"] },
  go: { file: "solution.go", compile: ["go", "build", "-o", "program", "solution.go"], start: ["./program"] },
  java: { file: "Main.java", compile: ["javac", "Main.java"], start: ["java", "-cp", ".", "Main"] },
};

/** `perSecond` runs work so many times, as many at once as there are cores. */
export async function languageRows(
  jail: Jail,
  perSecond: (count: number, work: () => Promise<void>) => Promise<number>,
  say: (line: string) => void,
) {
  const rows = [];
  for (const language of languageNames) {
    const plain = plainly[language];
    if (!plain || typeof (await toolsOf(language)) === "string") continue;
    const { title, sum } = languageOf(language);
    say(`programs in ${title}`);
    const folder = mkdtempSync(join(tmpdir(), "whet-bench-"));
    try {
      writeFileSync(join(folder, plain.file), sum);
      if (plain.compile) execFileSync(plain.compile[0]!, plain.compile.slice(1), { cwd: folder, stdio: "ignore" });
      const inJail = () => runTests(jail, language, sum);
      await inJail();
      const bare: number[] = [];
      const ours: number[] = [];
      for (let round = 0; round < rounds; round++) {
        bare.push(await perSecond(batches * testsPerBatch, () => spawnBare(plain.start, folder)));
        ours.push((await perSecond(batches, inJail)) * testsPerBatch);
      }
      const ratio = median(ours.map((rate, round) => rate / bare[round]!));
      rows.push({
        what: `${title}, ${testsPerBatch} tests of a program`,
        ours: `${median(ours).toFixed(0)}/s`,
        other: `${median(bare).toFixed(0)}/s bare ${plain.start[0]!.split("/").at(-1)}`,
        figure: `${ratio.toFixed(2)}×`,
        target: `≥ ${least}×`,
        met: ratio >= least,
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return rows;
}

async function runTests(jail: Jail, language: LanguageName, source: string): Promise<void> {
  const tests = Array.from({ length: testsPerBatch }, () => ({ kind: "stdin", stdin: "17 25\n" }) as const);
  const outcomes = await jail.run({ language, source, tests, limits, preamble: true }, () => "continue");
  const wrong = outcomes.find(({ stdout }) => Buffer.from(stdout).toString().trim() !== "42");
  if (wrong || outcomes.length !== testsPerBatch) throw new Error(`${language} in the jail: ${JSON.stringify(wrong)}`);
}

function spawnBare([command, ...args]: readonly string[], cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command!, args, { cwd, stdio: ["pipe", "pipe", "ignore"] });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.on("error", reject);
    child.on("close", () => (output.trim() === "42" ? resolve() : reject(new Error(`${command} printed ${output}`))));
    child.stdin.end("17 25\n");
  });
}
