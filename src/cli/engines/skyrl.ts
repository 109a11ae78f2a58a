// engine=skyrl: SkyRL with its JAX backend on the GPU of this machine, or on its processor where there is none.
import type { LocalEngine } from "./engine.ts";
import { isInstalled, skyrlFolder, skyrlVersion } from "./skyrl/install.ts";

export const skyrl: LocalEngine = {
  summary: "SkyRL with its JAX backend: an NVIDIA GPU of this machine, else its processor",
  installs: { what: `SkyRL ${skyrlVersion}`, folder: skyrlFolder, isWhole: isInstalled },
  // Loaded here: few commands start it.
  start: async (options) => (await import("./skyrl/start.ts")).start(options),
};
