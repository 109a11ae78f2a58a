import { expect, test } from "vitest";
import { Progress } from "./progress.ts";

/** A stream and a clock of the test's own. */
function setup(isTTY: boolean, total?: number) {
  const written: string[] = [];
  let time = 0;
  const stream = { isTTY, columns: 80, write: (text: string) => void written.push(text) };
  const progress = new Progress({
    label: "graded",
    stream,
    now: () => time,
    ...(total === undefined ? {} : { total }),
  });
  const pass = (ms: number) => {
    time += ms;
  };
  return { progress, written, pass };
}

test("plain output: a line now and then, no control characters", () => {
  const { progress, written, pass } = setup(false, 100);
  for (let done = 1; done <= 50; done++) {
    pass(500);
    progress.update(done);
  }
  progress.end("done");
  expect(written).toEqual(["graded 20/100 20%, 0:40 left\n", "graded 40/100 40%, 0:30 left\n", "done\n"]);
});

test("on a terminal: one line that redraws, cleared around printed lines", () => {
  const { progress, written, pass } = setup(true, 4);
  pass(200);
  progress.update(2, { note: "1 bad" });
  expect(written.at(-1)!.startsWith("\r\u001b[2K█")).toBe(true);
  expect(written.at(-1)).toMatch(/█+░+ graded 2\/4 50%, 0:00 left {2}1 bad$/);
  expect(written.at(-1)!.length).toBeLessThan(80 + 5);
  progress.update(3);
  expect(written).toHaveLength(1);
  progress.print("problem 7 is bad");
  expect(written[1]!.startsWith("\r\u001b[2Kproblem 7 is bad\n█")).toBe(true);
  progress.end();
  expect(written.at(-1)).toBe("\r\u001b[2K");
});

test("without a total the share may be given instead", () => {
  const { progress, written, pass } = setup(false);
  pass(10_000);
  progress.update(7, { fraction: 0.25 });
  expect(written).toEqual(["graded 7 25%, 0:30 left\n"]);
});
