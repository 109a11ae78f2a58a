// Problems that are in two sets at once: what was trained on says little when it is measured.
import { createHash } from "node:crypto";
import { countOf } from "../core/count.ts";
import type { Dataset } from "./dataset.ts";
import type { Problem } from "./problem.ts";

/** The test problems that are also trained on: by their text, for two files may number their problems alike. */
export function sharedProblems(train: Dataset, test: Dataset): Problem[] {
  const trained = new Set(train.problems.map(textHash));
  return test.problems.filter((problem) => trained.has(textHash(problem)));
}

/** A warning when test problems are also trained on; undefined when none is. */
export function overlapWarning(train: Dataset, test: Dataset): string | undefined {
  const shared = sharedProblems(train, test);
  if (shared.length === 0) return undefined;
  const which =
    shared.length === test.size
      ? "every test problem is also trained on"
      : `${shared.length} of ${countOf(test.size, "test problem")} ${shared.length === 1 ? "is" : "are"} also trained on (${shared
          .slice(0, 3)
          .map(({ id }) => id)
          .join(", ")}${shared.length > 3 ? ", …" : ""})`;
  return `${which}: Pass@1 will look better than the model is. Hold problems back for test_data.`;
}

/** Of what is asked, without regard to blanks. */
function textHash({ question, starterCode }: Problem): string {
  const plain = [question, starterCode ?? ""].map((text) => text.replaceAll(/\s+/g, " ").trim());
  return createHash("sha1").update(plain.join("\0")).digest("base64");
}
