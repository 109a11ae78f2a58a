import type { BuildOptions } from "esbuild";

/** How esbuild makes one module of many that Node runs. */
export declare const bundling: BuildOptions;
