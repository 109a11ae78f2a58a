// The programs of examples/ as somebody runs them who copied one file into a project of their own: from the packed package.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { transformSync } from "esbuild";
import { describe, expect, test } from "vitest";
import { sharedEngine } from "../support/shared-engine.ts";
import { root, run } from "./clone.ts";
import { environmentOf } from "./project.ts";

/** Their tests, in a project that has the package and the programs; one is packed for all tests of the package. */
export function describeExamples(place: () => { project: string }): void {
  describe("examples", () => {
    /** Node 22.18 and newer run the file as it is; for older ones its types are removed, as their users would. */
    function runExample(name: string, env: Record<string, string> = {}) {
      const code = transformSync(readFileSync(join(place().project, name), "utf8"), { loader: "ts" }).code;
      const runsTypeScript = "typescript" in process.features && process.features.typescript;
      const program = runsTypeScript ? [name] : ["--input-type=module", "--eval", code];
      return run([process.execPath, ...program], { cwd: place().project, env: environmentOf(process.execPath, env) });
    }

    test.each(["teach-a-line.ts", "grade-answers.ts", "own-reward.ts"])("%s is short", (name) => {
      const lines = readFileSync(join(root, "examples", name), "utf8").split("\n");
      expect(lines.filter((line) => line.trim() !== "" && !line.startsWith("//")).length).toBeLessThanOrEqual(30);
    });

    const onSharedEngine = async () => {
      const { baseUrl, apiKey } = await sharedEngine();
      return { TINKER_BASE_URL: baseUrl, TINKER_API_KEY: apiKey };
    };

    test("teach-a-line.ts trains and samples on ./whet serve", async () => {
      const { stdout, stderr } = await runExample("teach-a-line.ts", await onSharedEngine());
      expect(stdout.trim().split("\n"), stderr).toEqual([
        expect.stringMatching(/^step 1: loss [\d.]+$/),
        expect.stringMatching(/^step 10: loss [\d.]+$/),
        expect.stringMatching(/^step 20: loss 0\.\d+$/),
        expect.stringMatching(/^step 30: loss 0\.\d+$/),
        JSON.stringify("    return 42\n"),
      ]);
    });

    test("own-reward.ts trains five steps on its own problems and reward", async () => {
      const { stdout, stderr } = await runExample("own-reward.ts", await onSharedEngine());
      const lines = stdout.trim().split("\n");
      expect(lines, stderr).toEqual([
        ...[1, 2, 3, 4, 5].map((step) => expect.stringMatching(new RegExp(`^step ${step}: correct 0\\.\\d{3}$`))),
        `5 steps; the run is ${join(place().project, "own-reward")}`,
      ]);
      const correct = lines.slice(0, 5).map((line) => Number(line.split(" ").at(-1)));
      expect(correct[4]).toBeGreaterThan(correct[0]!); // the same numbers each time: it learns
    });

    test("grade-answers.ts tells right from wrong", async () => {
      const { stdout, stderr } = await runExample("grade-answers.ts");
      expect(stdout.trim().split("\n").slice(1), stderr).toEqual([
        "right: pass (pass), reward 1",
        "wrong: fail (wrong_answer), reward 0",
        "without code: fail (format_error), reward -0.1",
      ]);
    });
  });
}
