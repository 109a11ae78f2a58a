// engine=embedded: `./whet serve` as a child process.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runtimeFolder, runtimeVersion } from "../../graph/onnx-runtime.ts";
import { ensureRuntime } from "./embedded/runtime.ts";
import { EmbeddedServer } from "./embedded/server.ts";
import type { LocalEngine } from "./engine.ts";
import { embeddedModel } from "./model.ts";

export const embedded: LocalEngine = {
  summary: "the Tinker API over this machine's CPU; nothing to install but ONNX Runtime",
  installs: {
    what: `ONNX Runtime ${runtimeVersion}`,
    folder: runtimeFolder,
    isWhole: () => existsSync(join(runtimeFolder(), "node_modules")),
  },
  async start({ model, stateDir, logFile, logger, signal, onLost }) {
    // Here rather than in the child process, whose messages go to a file.
    await ensureRuntime((line) => logger.info(line));
    const audit = process.env["WHET_ENGINE_AUDIT"];
    const folder = await embeddedModel(model, signal);
    return EmbeddedServer.start({
      stateDir,
      logFile,
      // A run samples from a few policies at a time; each holds its weights and what it has computed of prompts.
      args: [`model=${folder}`, `model_name=${model}`, ...(audit ? [`audit=${audit}`] : []), "max_samplers=6"],
      onRestart: (reason) => logger.warn(`the embedded engine ended (${reason}) and is started again`),
      onLost,
    });
  },
};
