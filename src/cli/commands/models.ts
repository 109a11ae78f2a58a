// `./whet models`: what a server offers, with the context window, the renderer that each model would get, and the price where it is known.
import { rmSync } from "node:fs";
import { z } from "zod";
import { scratchFolder } from "../../core/files.ts";
import { whet } from "../../core/program.ts";
import { recommendedRenderer } from "../../renderers/index.ts";
import { TrainConfig } from "../../rl/config.ts";
import type { OfferedModel } from "../../rl/offered.ts";
import { type ModelPrice, priceOf } from "../../rl/prices.ts";
import { redact } from "../../runs/log.ts";
import { commandOf } from "../command.ts";
import { connectEngine, engineFiles, noKeyNotice } from "../parts/connect.ts";
import { interruptible } from "../terminal/interrupt.ts";
import { silentLogger } from "../terminal/loggers.ts";
import { textTable } from "../text/table.ts";

const ModelsOptions = TrainConfig.pick({ base_url: true }).extend({
  json: z.boolean().default(false).describe("one JSON object per model instead of the table"),
});

export const command = commandOf(ModelsOptions, {
  usage: "models [key=value …]",
  about: [
    "Lists the models of the server at base_url=, of hosted Tinker (with TINKER_API_KEY), or of the embedded engine. Nothing is billed.",
  ],
  run: ({ options }) => interruptible(() => list(options)),
});

async function list(options: z.output<typeof ModelsOptions>): Promise<number> {
  const folder = scratchFolder("models");
  try {
    const engine = await connectEngine(options, { ...engineFiles(folder), logger: silentLogger });
    try {
      if (engine.kind === "embedded") console.error(noKeyNotice);
      const rows = engine.models.map(describeModel);
      if (options.json) for (const row of rows) console.log(JSON.stringify(row));
      else console.log(table(rows, redact(engine.description), options.base_url));
      return 0;
    } finally {
      await engine.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Row {
  model: string;
  context_window: number | null;
  trainable: boolean;
  renderer: string;
  price: ModelPrice | null;
}

function describeModel({ name, maxContextLength, trainable }: OfferedModel): Row {
  return {
    model: name,
    context_window: maxContextLength ?? null,
    trainable: trainable ?? true,
    renderer: recommendedRenderer(name),
    price: priceOf(name) ?? null,
  };
}

function table(rows: readonly Row[], where: string, baseUrl: string): string {
  if (rows.length === 0) return `${where} offers nothing by name.`;
  const cells = rows.map((row) => [
    row.model + (row.trainable ? "" : " (sampling only)"),
    row.context_window === null ? "not said" : String(row.context_window),
    row.renderer,
    row.price === null ? "" : `${row.price.prefill} / ${row.price.sample} / ${row.price.train}  (${row.price.asOf})`,
  ]);
  const priced = rows.some(({ price }) => price !== null);
  const header = [
    "model",
    "context window",
    "renderer",
    priced ? "hosted Tinker, USD per million tokens: prefill / sample / train" : "",
  ];
  const server = baseUrl === "" ? "" : `base_url=${baseUrl} `;
  const first = rows.find(({ trainable }) => trainable) ?? rows[0]!;
  return [
    where,
    "",
    ...textTable(header, cells),
    "",
    redact(`Train one: ${whet} train ${server}model_name=${first.model}`),
  ].join("\n");
}
