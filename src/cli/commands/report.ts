// `./whet report`: a run as one HTML page that needs nothing else.
import { join } from "node:path";
import { z } from "zod";
import { messageOf, WhetstoneError } from "../../core/errors.ts";
import { writeFileAtomic } from "../../core/files.ts";
import { renderReport } from "../../dashboard/report.ts";
import { commandOf } from "../command.ts";
import { runKey, runOf } from "../weights/find-run.ts";

const ReportOptions = z.strictObject({
  run: runKey,
  out: z.string().default("").describe('file to write; "": report.html in the run directory'),
});

export const command = commandOf(ReportOptions, {
  usage: "report [RUN] [out=FILE.html]",
  about: [
    "Writes one self-contained page about a run: curves, findings, evaluations, programs with why they failed, settings. It opens from disk,",
    "loads nothing and runs no script. It holds answers and tests of the run's data: send it to whom those may go.",
  ],
  words: "run",
  async run({ options }) {
    const run = runOf(options.run);
    const html = await renderReport(run, new Date());
    const out = options.out || join(run, "report.html");
    try {
      writeFileAtomic(out, html);
    } catch (cause) {
      throw new WhetstoneError(
        "cli/report-write",
        `The report could not be written to ${out} (${messageOf(cause)}). Set out= to a file that you may write.`,
        { cause },
      );
    }
    console.log(out);
    return 0;
  },
});
