import { expect, test } from "vitest";
import { formatReport } from "../../bench/report.ts";
import { command } from "../../scripts/bench.ts";

test("a benchmark that does not exist is named, with the nearest one", async () => {
  await expect(command.run(["cleint"])).rejects.toMatchObject({
    code: "config/unknown-benchmark",
    message: expect.stringContaining('"client"'),
  });
});

test("a report is a table whose columns line up", () => {
  const text = formatReport({
    title: "Title",
    columns: ["ours", "theirs"],
    rows: [
      { what: "first", ours: "1 ms", other: "10 ms", figure: "10.0×", target: "≥ 3×", met: true },
      { what: "the second", ours: "20 ms", other: "", figure: "20 ms", target: "< 5 ms", met: false },
      { what: "third", ours: "1", other: "2", figure: "2×" },
    ],
    notes: ["A note."],
  });
  expect(text).toBe(
    [
      "Title",
      "",
      "               ours  theirs  figure          target",
      "  first        1 ms   10 ms   10.0×       ≥ 3×  met",
      "  the second  20 ms           20 ms  < 5 ms  MISSED",
      "  third           1       2      2×",
      "",
      "  A note.",
    ].join("\n"),
  );
});
