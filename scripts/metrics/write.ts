// docs/metrics.md, made from the table of names: `npm run metrics` writes it, a test compares it.
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type MetricSection, metricSections } from "../../src/runs/metric-names.ts";

export const metricsPage = fileURLToPath(new URL("../../docs/metrics.md", import.meta.url));

const intro = `# Metrics

\`metrics.jsonl\` has one JSON object per step, \`step\` first (counted from 0). A name that has no data in a step is absent: missing is
not zero. An evaluation runs beside training, and its figures stand in the record of the step whose policy it measured: that record,
and those after it, are written when it is over. The evaluation after the last step stands under \`step\` = number of steps, with the
\`eval/\` names only. Names are public: they do not change within a major version. This page is made from
\`src/runs/metric-names.ts\` by \`npm run metrics\`; words in capitals stand for what differs.`;

/** The whole page. */
export function metricsDocs(sections: readonly MetricSection[] = metricSections): string {
  const pages = sections.flatMap(({ title, about, metrics, after }) => [
    `## ${title}`,
    ...(about === undefined ? [] : [about]),
    [
      "| name | meaning |",
      "| --- | --- |",
      ...Object.entries(metrics).map(([name, meaning]) => `| \`${name}\` | ${meaning} |`),
    ].join("\n"),
    ...(after === undefined ? [] : [after]),
  ]);
  return `${[intro, ...pages].join("\n\n")}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(metricsPage, metricsDocs());
