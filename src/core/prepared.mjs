// The checkout's command as a few JavaScript files, for a Node that cannot run TypeScript. There each of some 300 modules would go through
// ts-hooks.mjs, which takes longer than most commands do. They are made with esbuild when a file of src/ has changed, and kept.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { SourceMap } from "node:module";
import { homedir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const source = join(root, "src");
/** The second one is for a checkout that cannot be written to. */
const cacheFolders = [
  join(root, "node_modules/.cache/whetstone/js"),
  join(process.env.WHETSTONE_CACHE || join(homedir(), ".cache", "whetstone"), "js"),
];
/** What is found by its address: the command, worker threads, and the package's entries, which modules of users import. */
const entry = /^cli\/main\.ts$|(^|-|\/)worker\.ts$|^(\w+\/)?index\.ts$/;
/** A process may go on for weeks, and opens a file when it needs it. */
const keptMs = 30 * 24 * 3600 * 1000;

/** The address of the prepared src/cli/main.ts; undefined where it cannot be made. */
export const prepare = () => preparedModule(new URL("../cli/main.ts", import.meta.url));

/** The address of what a module of src/ is prepared as; undefined where that cannot be made, or it is none that is started. */
export async function preparedModule(module) {
  const file = relative(source, fileURLToPath(module));
  if (!entry.test(file) || file.startsWith("..")) return undefined;
  const folder = await preparedFolder();
  return folder === undefined ? undefined : pathToFileURL(join(folder, file.replace(/\.ts$/, ".js"))).href;
}

async function preparedFolder() {
  if (/[?#]/.test(root)) return undefined; // esbuild takes them for parts of an address
  const files = sourceFiles();
  const name = keyOf(files);
  const known = cacheFolders.map((folder) => join(folder, name)).find((folder) => existsSync(folder));
  const folder =
    known ??
    (await build(
      files.filter((file) => entry.test(file)),
      name,
    ));
  if (folder === undefined) return undefined;
  // Node's own source maps are read whenever anything looks at an error, which takes a tenth of a second.
  process.on("uncaughtExceptionMonitor", (error) => {
    if (typeof error?.stack === "string") error.stack = inSource(error.stack, pathToFileURL(folder).href);
  });
  return folder;
}

/** A stack with the places in the source behind those in `folder`. */
function inSource(stack, folder) {
  const maps = new Map();
  return stack.replaceAll(/(file:\S+?\.js):(\d+):(\d+)/g, (place, url, line, column) => {
    if (!url.startsWith(folder)) return place;
    try {
      const file = fileURLToPath(url);
      const map = maps.get(url) ?? new SourceMap(JSON.parse(readFileSync(`${file}.map`, "utf8")));
      maps.set(url, map);
      const { originalSource, originalLine, originalColumn } = map.findEntry(line - 1, column - 1);
      return `${new URL(originalSource, url).href}:${originalLine + 1}:${originalColumn + 1}`;
    } catch {
      return place;
    }
  });
}

function sourceFiles() {
  return readdirSync(source, { recursive: true })
    .filter((file) => /\.(ts|mjs)$/.test(file) && !/\.test\.ts$|^dashboard\/page\//.test(file))
    .sort();
}

/** Other files, other packages or another place give another key. */
function keyOf(files) {
  const hash = createHash("sha1").update(root);
  for (const path of [...files.map((file) => join(source, file)), fileURLToPath(import.meta.url)]) {
    const { size, mtimeMs } = statSync(path);
    hash.update(`\0${path}\0${size}\0${mtimeMs}`);
  }
  return hash.update(readFileSync(join(root, "package-lock.json"))).digest("hex");
}

async function build(entries, name) {
  const { build: bundle, stop } = await import("esbuild");
  for (const parent of cacheFolders) {
    const folder = join(parent, name);
    const temporary = `${folder}.${process.pid}.part`;
    try {
      removeOld(parent);
      mkdirSync(temporary, { recursive: true });
      await bundle({
        entryPoints: entries.map((file) => join(source, file)),
        outdir: temporary,
        outbase: source,
        ...bundling,
        splitting: true,
        target: "node20",
        sourcemap: "linked",
        sourcesContent: false,
        logLevel: "silent",
        absWorkingDir: root,
        define: { WHET_PREPARED: JSON.stringify(`${pathToFileURL(folder).href}/`) },
      });
      renameSync(temporary, folder);
      await stop(); // its process would stay as long as this one
      return folder;
    } catch {
      if (existsSync(temporary)) rmSync(temporary, { recursive: true, force: true });
      // Somebody else was faster; or this folder cannot be written to, and the next one is tried.
      if (existsSync(folder)) return folder;
    }
  }
  return undefined;
}

/** Modules find their files beside the source. */
const keepAddresses = {
  name: "addresses",
  setup(plugin) {
    plugin.onLoad({ filter: /\.(ts|mjs)$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
      loader: path.endsWith(".ts") ? "ts" : "js",
    }));
  },
};

/** How esbuild makes one module of many that Node runs. */
export const bundling = {
  bundle: true,
  format: "esm",
  platform: "node",
  // Packages that are CommonJS ask for Node's modules.
  banner: { js: 'import{createRequire as whetRequire}from"node:module";const require=whetRequire(import.meta.url);' },
  plugins: [keepAddresses],
};

function removeOld(parent) {
  if (!existsSync(parent)) return;
  for (const name of readdirSync(parent)) {
    const { mtimeMs } = statSync(join(parent, name), { throwIfNoEntry: false }) ?? {};
    if (mtimeMs !== undefined && Date.now() - mtimeMs > keptMs)
      rmSync(join(parent, name), { recursive: true, force: true });
  }
}
