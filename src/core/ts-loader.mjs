// Lets Node run the TypeScript source as it is. Node 22.18 and newer strip types by themselves, so this does nothing there;
// on older ones it registers ts-hooks.mjs. Use: `node --import ./src/core/ts-loader.mjs src/cli/main.ts`.
import { register } from "node:module";

if (!process.features.typescript) {
  process.setSourceMapsEnabled(true);
  register("./ts-hooks.mjs", import.meta.url);
}
