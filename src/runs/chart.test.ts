import { expect, test } from "vitest";
import { runChart } from "./chart.ts";

test("a run's picture has a line per metric and an interval per evaluation, and its title is text", () => {
  const history = Array.from({ length: 51 }, (_, step) => ({
    step,
    mean_reward: step / 50 - 0.1,
    format_rate: 1,
    ...(step % 25 === 0 ? { "eval/pass@1": 0.5, "eval/pass@1_low": 0.4, "eval/pass@1_high": 0.6 } : {}),
  }));
  const svg = runChart(history, 'a <script> & "quotes"');
  expect(svg).toContain("a &lt;script&gt; &amp; &quot;quotes&quot;");
  expect(svg.match(/class="line [a-z]+" d="M[^V"]*"/g)).toHaveLength(2);
  expect(svg.match(/<circle class="dot orange"[^>]* r="3.5"/g)).toHaveLength(3);
  expect(svg).not.toContain("NaN");
});

test("an empty run still gives a picture", () => expect(runChart([], "empty")).not.toContain("NaN"));
