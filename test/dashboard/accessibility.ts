// axe-core over the page as it stands: what it calls serious or critical.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

/** By all rules or by these. Put in through the debugger, so that the page's own policy stays as it is. */
export async function violations(page: Page, rules?: readonly string[]): Promise<string[]> {
  const options = { resultTypes: ["violations"], ...(rules && { runOnly: { type: "rule", values: rules } }) };
  const session = await page.context().newCDPSession(page);
  try {
    const { result: known } = await session.send("Runtime.evaluate", { expression: "typeof axe" });
    if (known.value === "undefined") await session.send("Runtime.evaluate", { expression: source });
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression: `axe.run(document, ${JSON.stringify(options)}).then((found) => JSON.stringify(found.violations))`,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails)
      throw new Error(`axe: ${exceptionDetails.text} ${exceptionDetails.exception?.description ?? ""}`);
    return (JSON.parse(result.value as string) as Violation[])
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(
        ({ id, impact, nodes }) =>
          `${impact} ${id}: ${nodes
            .slice(0, 3)
            .map(({ html }) => html.slice(0, 160))
            .join(" | ")}`,
      );
  } finally {
    await session.detach();
  }
}
