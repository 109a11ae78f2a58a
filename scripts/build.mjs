// Builds the package's dist/ from src/: `npm pack` and `npm publish` call it before they pack (prepack), and with --clean after
// (postpack), so that a checkout has no build that could be stale. JavaScript and declarations come from tsc; files that are not
// TypeScript keep their place, so that a module finds them beside itself here as there.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const root = fileURLToPath(new URL("../", import.meta.url));
const dist = join(root, "dist");
const config = join(root, "tsconfig.build.json");

/** Files of src/ that are no TypeScript and belong into the package. */
const asset = /\.(py|json|mjs|html|css|svg|txt)$|^core\/languages\/harness\/|^dashboard\/page\/.+\.js$/;
/** Parts of a checkout that let it run without a build. */
const checkoutOnly = /^core\/(prepared|ts-hooks|ts-loader|worker)\.mjs$|(^|\/)tsconfig\.json$/;

/** Packages that go into this one, as one ES module each. */
const vendored = {
  // As a dependency it is CommonJS that calls `require`, which is an error in the ES module that a user's bundler makes of it.
  undici: `export { default as Pool } from "undici/lib/dispatcher/pool.js"`,
};

rmSync(dist, { recursive: true, force: true });
if (!process.argv.includes("--clean")) build();

function build() {
  // Through Node and not by its name: on some file systems and systems the link in .bin cannot be run.
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { status } = spawnSync(process.execPath, [tsc, "-p", config, "--singleThreaded"], {
    cwd: root,
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) {
    rmSync(dist, { recursive: true, force: true });
    throw new Error("tsc refused the source; its message is above.");
  }
  for (const file of filesUnder(join(root, "src"))) {
    if (!asset.test(file) || checkoutOnly.test(file)) continue;
    mkdirSync(dirname(join(dist, file)), { recursive: true });
    copyFileSync(join(root, "src", file), join(dist, file));
  }
  chmodSync(join(dist, "cli/whetstone.mjs"), 0o755);
  keepPublicDeclarations();
  includeVendored();
  includePageLibraries();
}

/** What the dashboard's page loads: the libraries' own files, beside the page. */
function includePageLibraries() {
  const files = JSON.parse(readFileSync(join(root, "src/dashboard/vendor.json"), "utf8"));
  for (const [name, source] of Object.entries(files)) {
    const target = join(dist, "dashboard/vendor", name);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(root, "node_modules", source), target);
    const library = source.split("/")[0];
    copyFileSync(join(root, "node_modules", library, "LICENSE"), join(dist, "dashboard/vendor", `${library}.LICENSE`));
  }
}

function includeVendored() {
  mkdirSync(join(dist, "vendor"));
  for (const [name, contents] of Object.entries(vendored)) {
    const { outputFiles } = buildSync({
      stdin: { contents, resolveDir: root },
      bundle: true,
      minifyWhitespace: true,
      format: "esm",
      platform: "node",
      target: "node20",
      write: false,
    });
    const imports = new Map();
    const body = outputFiles[0].text.replaceAll(/__require\("(node:[\w/]+)"\)/g, (call, builtin) => {
      if (!builtinModules.includes(builtin.slice("node:".length))) return call; // asked for in vain, as on an older Node
      imports.set(builtin, `node_${builtin.slice("node:".length).replaceAll("/", "_")}`);
      return imports.get(builtin);
    });
    const lines = [...imports].map(([builtin, variable]) => `import ${variable} from "${builtin}";\n`).join("");
    writeFileSync(join(dist, `vendor/${name}.js`), lines + body);
    copyFileSync(join(root, "node_modules", name, "LICENSE"), join(dist, `vendor/${name}.LICENSE`));
  }
  for (const name of filesUnder(dist)) {
    if (!/\.m?js$/.test(name) || name.startsWith("vendor/")) continue;
    const text = readFileSync(join(dist, name), "utf8");
    const folder = `${"../".repeat(name.split("/").length - 1)}vendor/`;
    const changed = text.replaceAll(/ from "undici"/g, () => ` from "${folder}undici.js"`);
    if (changed !== text) writeFileSync(join(dist, name), changed);
  }
}

/** Only what the entries' types are made of stays; tsc leaves the names of source files in declarations. */
function keepPublicDeclarations() {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const waiting = Object.values(exports).flatMap((target) => (target.types ? [join(root, target.types)] : []));
  const kept = new Set();
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (kept.has(file)) continue;
    kept.add(file);
    const text = readFileSync(file, "utf8").replaceAll(
      /((?:from|import)\s*\(?\s*)"(\.{1,2}\/[^"]+)\.ts"/g,
      (_, before, path) => {
        waiting.push(join(dirname(file), `${path}.d.ts`));
        return `${before}"${path}.js"`;
      },
    );
    writeFileSync(file, text);
  }
  for (const name of filesUnder(dist))
    if (name.endsWith(".d.ts") && !kept.has(join(dist, name))) rmSync(join(dist, name));
}

function filesUnder(folder) {
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => relative(folder, path));
}
