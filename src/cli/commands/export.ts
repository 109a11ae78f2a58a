// `./whet export`: a checkpoint of a run as a folder that other programs load: a PEFT adapter, or merged weights; with a model card.
import { createReadStream, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { createGunzip } from "node:zlib";
import { z } from "zod";
import { bundledModel } from "../../core/bundled.ts";
import { bytesOf } from "../../core/count.ts";
import { ConfigError } from "../../core/errors.ts";
import { scratchFolder } from "../../core/files.ts";
import { findOnPath } from "../../core/languages/machine.ts";
import { lockHolder } from "../../core/lock-file.ts";
import { withoutVariant } from "../../core/model-name.ts";
import { extractTar } from "../../core/tar.ts";
import { Adapter, adapterFiles } from "../../export/adapter.ts";
import { type BaseModel, licenceOf, openBaseModel } from "../../export/base-model.ts";
import { type Checked, checkExport } from "../../export/check.ts";
import { downloadAdapter } from "../../export/download.ts";
import { ExportError } from "../../export/errors.ts";
import { MergePlan, mergedTypes } from "../../export/merge.ts";
import { modelCard } from "../../export/model-card.ts";
import { checkPlace, explainDisk, writeFolder } from "../../export/new-folder.ts";
import { converterName, findConverter, writeGguf } from "../../export/to-gguf.ts";
import { isHubId } from "../../hub/hub.ts";
import { runChart } from "../../runs/chart.ts";
import type { CheckpointRecord } from "../../runs/checkpoints.ts";
import { runFiles } from "../../runs/directory.ts";
import { RunView } from "../../runs/view.ts";
import { commandOf } from "../command.ts";
import { connectEngine, engineFiles } from "../parts/connect.ts";
import { interruptible } from "../terminal/interrupt.ts";
import { stderrLogger as logger, say } from "../terminal/loggers.ts";
import { Progress, whileDownloading } from "../terminal/progress.ts";
import { checkpointFolder } from "../weights/borrow-checkpoint.ts";
import { runKey, runOf } from "../weights/find-run.ts";
import { engineOfRun, findWeights } from "../weights/find-weights.ts";
import { checkPush, isExport, push } from "../weights/push-export.ts";

const ExportOptions = z.strictObject({
  run: runKey,
  checkpoint: z.string().default("").describe("a checkpoint's name, or a tinker:// path; the run's last unless given"),
  out: z.string().default("").describe("folder to write; it must be new or empty"),
  merge: z.boolean().default(false).describe("write a whole model, the adapter added to the base model's weights"),
  base: z
    .string()
    .default("")
    .describe("the base model: a folder, or a name on the hub; needed by merge=true unless the model is a bundled one"),
  dtype: z
    .enum(mergedTypes)
    .default("base")
    .describe("merge=true: how weights are stored; base: as the base model's are"),
  max_shard_mb: z
    .number()
    .positive()
    .default(5000)
    .describe("merge=true: largest file; more are written with an index"),
  gguf: z
    .boolean()
    .default(false)
    .describe("merge=true: a GGUF file too, by llama.cpp's converter (LLAMA_CPP, or on the PATH)"),
  python: z
    .string()
    .default("python3")
    .describe("Python whose transformers and peft, where it has them, load what was written; none: no such check"),
  push: z
    .string()
    .default("")
    .describe("OWNER/NAME: a model repository of the Hugging Face hub to put it into, new or not; needs HF_TOKEN"),
  private: z.boolean().default(true).describe("push=: a new repository is to be seen by its owner only"),
  base_url: z.string().default("").describe("the server that has the checkpoint; the one that trained it unless given"),
});
type ExportOptions = z.output<typeof ExportOptions>;

export const command = commandOf(ExportOptions, {
  usage: "export [RUN] out=DIR [key=value …]",
  about: [
    "Writes a checkpoint of a run as a folder that transformers and peft, vLLM and llama.cpp's converters load, with a model card: a PEFT adapter,",
    "or with merge=true a whole model. Reads the embedded engine's checkpoints from disk, others from their server.",
  ],
  words: "run",
  async run({ options }) {
    options.run = runOf(options.run);
    if (options.out === "") throw new ConfigError("config/no-out", "No folder to write was named. Write out=DIR.");
    checkPush(options);
    if (options.push !== "" && isExport(options.out)) {
      say(`out=${options.out} is there already and is pushed as it is`);
      return interruptible((signal) => push(options, signal));
    }
    checkPlace(options.out);
    if (options.gguf && !options.merge)
      throw new ConfigError("config/conflict", "gguf=true is of a whole model. Add merge=true.");
    return interruptible(async (signal) => {
      await exportRun(options, signal);
      return options.push === "" ? 0 : push(options, signal);
    });
  },
});

async function exportRun(options: ExportOptions, signal: AbortSignal): Promise<void> {
  const view = RunView.read(options.run);
  const modelName = String(view.config["model_name"] ?? "");
  if (options.checkpoint === "base")
    throw new ConfigError(
      "config/no-checkpoint",
      "checkpoint=base is the base model itself: there is no adapter to export.",
    );
  const weights = findWeights(options.checkpoint, options.run, modelName);
  const { record } = weights;
  if (!record)
    throw new ConfigError(
      "config/no-checkpoint",
      `${weights.path} is no checkpoint of run=${options.run}. Name one of: ${view.checkpoints.map(({ name }) => name).join(", ")}.`,
    );
  const holder = lockHolder(join(options.run, runFiles.lock));
  if (holder !== undefined)
    say(`run=${options.run} is live (process ${holder}); ${weights.label} is exported as it is now`);
  const baseName = baseNameOf(options, modelName);
  const converter = options.gguf ? findConverter(findOnPath(converterName)) : undefined;

  const scratch = scratchFolder("export");
  try {
    const adapter = new Adapter(await adapterFolder(options, record, scratch, signal));
    try {
      const base = await openBase(baseName, modelName, options, signal);
      await write(options, { view, record, adapter, base, modelName, converter }, signal);
    } finally {
      adapter.close();
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The base model's name; a merge must know where its weights are. */
function baseNameOf(options: ExportOptions, modelName: string): string {
  // A variant of a model has the same weights.
  const name = options.base || withoutVariant(modelName);
  if (!options.merge || options.base !== "" || bundledModel(name) !== undefined || existsSync(name)) return name;
  throw new ConfigError(
    "config/no-base",
    `merge=true adds the adapter to the weights of ${modelName}, which are not part of the run. Name them: base=FOLDER` +
      (isHubId(name) ? `, or base=${name} to download them from the hub.` : "."),
  );
}

/** SkyRL sends no archives; the one that it saved is in the run's folder. */
async function skyrlAdapter(run: string, record: CheckpointRecord, scratch: string): Promise<string> {
  const [model = "", ...rest] = (record.sampler_path ?? "").replace("tinker://", "").split("/");
  const saved = join(engineFiles(run).stateDir, "checkpoints", model, "sampler_weights");
  const archive = join(saved, `${rest.at(-1)}.tar.gz`);
  if (!existsSync(archive))
    throw new ExportError(
      "export/checkpoint-gone",
      `Checkpoint ${record.name} is not in ${saved} any more. Choose another one with checkpoint=.`,
    );
  const folder = join(scratch, "saved");
  const wanted: readonly string[] = Object.values(adapterFiles);
  await extractTar(createReadStream(archive).pipe(createGunzip()), folder, { maxBytes: 2 ** 36 }, (path) =>
    wanted.includes(basename(path)) ? basename(path) : undefined,
  );
  return folder;
}

/** A folder with the adapter's two files: the run's own, or what its server sends. */
async function adapterFolder(
  options: ExportOptions,
  record: CheckpointRecord,
  scratch: string,
  signal: AbortSignal,
): Promise<string> {
  const { kind, baseUrl } = engineOfRun(options.run, options.base_url);
  if (kind === "embedded") {
    const folder = checkpointFolder(record.sampler_path ?? record.state_path!, options.run);
    const missing = Object.values(adapterFiles).find((name) => !existsSync(join(folder, name)));
    if (missing === undefined) return folder;
    throw new ExportError(
      "export/checkpoint-gone",
      `Checkpoint ${record.name} has no ${missing} any more (${folder}). Choose another one with checkpoint=.`,
    );
  }
  if (kind === "skyrl") return skyrlAdapter(options.run, record, scratch);
  const engine = await connectEngine({ base_url: baseUrl }, { ...engineFiles(scratch), logger, kind, signal });
  const folder = join(scratch, "download");
  mkdirSync(folder);
  try {
    say(`fetching checkpoint ${record.name} from ${engine.description}`);
    const { sampler_path: sampler, state_path: state } = record;
    await downloadAdapter(engine.service, { name: record.name, sampler, state }, folder, { signal, say });
  } catch (error) {
    throw explainDisk(error, folder);
  } finally {
    await engine.close();
  }
  return folder;
}

/** The base model: its weights for a merge; for the card's licence only what is on this machine. */
async function openBase(
  name: string,
  modelName: string,
  options: ExportOptions,
  signal: AbortSignal,
): Promise<BaseModel> {
  const isHere = !isHubId(name) && (options.base !== "" || bundledModel(name) !== undefined);
  if (!options.merge && !isHere) return { name: name || modelName, files: new Map() };
  return whileDownloading("base model", (show) => openBaseModel(name, { ...show, signal, weights: options.merge }));
}

/** What is written, and what it is made of. */
interface Parts {
  view: RunView;
  record: CheckpointRecord;
  adapter: Adapter;
  base: BaseModel;
  modelName: string;
  /** llama.cpp's, where a GGUF file is asked for. */
  converter: string | undefined;
}

async function write(options: ExportOptions, parts: Parts, signal: AbortSignal): Promise<void> {
  const { view, record, adapter, base, modelName, converter } = parts;
  const { out, python, dtype } = options;
  const plan = options.merge ? new MergePlan(base, adapter, dtype) : undefined;
  const progress = new Progress({ label: "merging" });
  const onProgress = (done: number, total: number) =>
    progress.update(Math.round(done / 1e6), { fraction: done / total, note: `of ${bytesOf(total)}` });
  let checked: Checked = { done: [], left: ["with any library: python=none"] };
  const name = basename(resolve(out));
  // Other programs load a bundled model from its folder: they do not know its name.
  const loadable = bundledModel(base.name) ?? base.name;
  const card = modelCard({
    name,
    modelName,
    base: loadable,
    hubBase: [base.name, modelName].find(isHubId),
    licence: licenceOf(base),
    view,
    checkpoint: record,
    adapter,
    merged: plan && { storedAs: dtype === "base" ? "the base's are" : dtype, unties: plan.unties },
  });
  const title = `${modelName}, ${basename(resolve(options.run))}`;
  const records = view.records.filter(({ step }) => step <= record.step);
  try {
    const bytes = plan?.totalBytes ?? statSync(adapter.file.path).size;
    await writeFolder(out, bytes + 1e6, async (folder) => {
      if (plan) await plan.write(folder, { maxShardBytes: options.max_shard_mb * 1e6, signal, onProgress });
      else adapter.write(folder, loadable);
      writeFileSync(join(folder, "curves.svg"), runChart(records, title));
      writeFileSync(join(folder, "README.md"), card);
      signal.throwIfAborted();
      progress.end();
      if (python !== "none") {
        say("checking that it loads");
        const isHere = existsSync(join(loadable, "config.json"));
        checked = await checkExport(folder, { python, base: isHere ? loadable : undefined, signal });
      }
      if (converter === undefined) return;
      say(`converting to ${name}.gguf`);
      const convert = { converter, python: python === "none" ? "python3" : python, dtype, signal };
      checked.done.push(await writeGguf(folder, `${name}.gguf`, convert));
    });
    const what = plan ? "merged model" : `PEFT adapter of rank ${adapter.rank}`;
    console.log(`${out}: ${what} of checkpoint ${record.name} (step ${record.step}), ${bytesOf(bytes)}`);
    const load = (model: string) => `AutoModelForCausalLM.from_pretrained(${JSON.stringify(model)})`;
    say(`load it  ${plan ? load(out) : `PeftModel.from_pretrained(${load(loadable)}, ${JSON.stringify(out)})`}`);
    for (const line of checked.done) say(`checked  ${line}`);
    for (const line of checked.left) say(`not checked ${line}`);
  } finally {
    progress.end();
    plan?.close();
  }
}
