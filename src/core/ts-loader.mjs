// Lets Node run the TypeScript source as it is, and the package's own entries ("whetstone/tinker") be imported inside the checkout.
// Node 22.18 and newer strip types by themselves; for older ones ts-hooks.mjs does it.
// Use: `node --import ./src/core/ts-loader.mjs FILE.ts`.
import module from "node:module"; // a default import: Node 20 has no registerHooks to name
import { resolve } from "./own-entries.mjs";

if (process.features.typescript) {
  module.registerHooks({ resolve });
} else {
  process.setSourceMapsEnabled(true);
  module.register("./ts-hooks.mjs", import.meta.url);
}
