// Ends every test run with one plain line, `N passed, N failed, N skipped`, and the reason of every skip that gave one.
import type { Reporter, TestModule } from "vitest/node";

export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      if (module.children.size === 0 && module.state() === "failed") count.failed++;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed") count.passed++;
        else if (state === "failed") count.failed++;
        else count.skipped++;
      }
    }
    const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : "";
    // Printed once everything else has been written.
    process.on("exit", () => console.log(`${count.passed} passed, ${count.failed} failed${skipped}`));
  }
}
