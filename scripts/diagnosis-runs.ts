// Real runs with a fault in each, and healthy ones: which finding appears, and after which step. Heavy, so not part of the tests:
//   node --import ./src/core/ts-loader.mjs scripts/diagnosis-runs.ts            every fault
//   node --import ./src/core/ts-loader.mjs scripts/diagnosis-runs.ts healthy    ten healthy runs (seeds, max_lag 0, 1, 2): no warning at all
//   node --import ./src/core/ts-loader.mjs scripts/diagnosis-runs.ts NAME …     some of them; a word with / is the folder to keep runs in
// Exit code 1 when a fault was not found, or a healthy run was warned about.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { diagnose, type RunFinding } from "../src/diagnosis/diagnosis.ts";
import { readJournal } from "../src/runs/read-journal.ts";
import { type Fault, faults } from "./diagnosis/faults.ts";
import { healthy } from "./diagnosis/healthy.ts";

const words = process.argv.slice(2);
const kept = words.find((word) => word.includes("/"));
const folder = kept ? resolve(kept) : mkdtempSync(join(tmpdir(), "whetstone-diagnosis-"));
mkdirSync(folder, { recursive: true });
const names = words.filter((word) => !word.includes("/"));
const all: Record<string, Fault> = { ...faults, ...healthy };
const unknown = names.filter((name) => !(name in all) && name !== "healthy");
if (unknown.length > 0)
  throw new Error(`unknown: ${unknown.join(", ")}. Known: healthy, ${Object.keys(all).join(", ")}`);
const chosen =
  names.length === 0
    ? Object.keys(faults)
    : names.flatMap((name) => (name === "healthy" ? Object.keys(healthy) : [name]));

let bad = 0;
console.log(["run".padEnd(22), "steps", "seconds", "findings (level id@step); a wanted one is marked *"].join("  "));
for (const name of chosen) {
  const { wants, run } = all[name]!;
  const path = join(folder, name);
  rmSync(path, { recursive: true, force: true });
  const started = performance.now();
  const skipped = await run(path);
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  if (skipped !== undefined) {
    console.log(`${name.padEnd(22)}  skipped: ${skipped}`);
    continue;
  }
  const events = [...readJournal(path)].map(({ event }) => event);
  const findings = diagnose(path, events, Date.now());
  const steps = events.filter(({ type }) => type === "step-done").length;
  const missing = wants.filter((id) => !findings.some(({ finding }) => finding.id === id));
  const warned = wants.length === 0 && findings.some(({ finding }) => finding.level !== "note");
  if (missing.length > 0 || warned) bad++;
  const shown = findings.map((one) => show(one, wants)).join(", ") || "none";
  const verdict = missing.length > 0 ? `   NOT FOUND: ${missing.join(", ")}` : warned ? "   NOT HEALTHY" : "";
  console.log([name.padEnd(22), String(steps).padStart(5), seconds.padStart(7), shown + verdict].join("  "));
}
if (kept === undefined) rmSync(folder, { recursive: true, force: true });
console.log(bad === 0 ? "as expected" : `${bad} not as expected`);
process.exitCode = bad === 0 ? 0 : 1;

function show({ since, step, finding: { id, level } }: RunFinding, wants: readonly string[]): string {
  const at = step > since ? `${since}…${step}` : String(since);
  return `${wants.includes(id) ? "*" : ""}${level} ${id}@${at}`;
}
