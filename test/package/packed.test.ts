// The package as a stranger gets it: packed, installed by npm into an empty project outside this repository, type-checked, bundled and
// run. On this machine's Node; `npm run release:check` runs more, on the newest Node of every supported line.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { buildSync } from "esbuild";
import ts from "typescript-api";
import { beforeAll, describe, expect, test } from "vitest";
import { settingsSource } from "../../scripts/config/write.ts";
import { startServe } from "../contract/serve-process.ts";
import { temporaryFolders } from "../support/folders.ts";
import { basicPrograms, programFolder, root, run, works } from "./clone.ts";
import { describeExamples } from "./examples.ts";
import {
  addEngine,
  copyPrograms,
  environmentOf,
  nodeOf,
  nodeVersions,
  packInto,
  projectWith,
  readJson,
  wholeRelease,
} from "./project.ts";

const folder = temporaryFolders();
const versions = nodeVersions();
const bin = (name: string) => join(root, "node_modules/.bin", name);
const noNetwork = process.getuid?.() === 0 ? ["unshare", "-n"] : ["unshare", "-rn"];
const canCutNetwork = await works([...noNetwork, "true"]);
let tarball: string;
let project: string;
let installed: string;

beforeAll(async () => {
  tarball = await packInto(folder());
  project = await projectWith(tarball, join(folder(), "project"));
  installed = join(project, "node_modules/whetstone");
  copyPrograms(project);
});

const filesUnder = (place: string): string[] =>
  (readdirSync(place, { recursive: true }) as string[]).filter((name) => statSync(join(place, name)).isFile());

describe("what is in it", () => {
  test("only what is needed to run", () => {
    const names = filesUnder(installed);
    const allowed = [
      /^dist\/.+\.(js|d\.ts|mjs|d\.mts|py|json|LICENSE)$/,
      /^dist\/cli\/engines\/skyrl\/versions\.txt$/,
      /^dist\/core\/languages\/harness\/.+\.(cpp|go|java|rs)$/,
      /^dist\/dashboard\/(report\.css|(page|vendor)\/.+\.(html|css|svg))$/,
      /^data\/starter\/(train\.jsonl|test\.jsonl|README\.md)$/,
      /^models\/nano-coder\//,
      /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|SECURITY\.md)$/,
      /^docs\/.+\.(md|svg|png|txt)$/,
      /^examples\/.+\.(ts|sh)$/,
    ];
    expect(names.filter((name) => !allowed.some((pattern) => pattern.test(name)))).toEqual([]);
    expect(names.filter((name) => /^(scripts|bench)\/|^dist\/core\/(prepared|ts-(hooks|loader))\./.test(name))).toEqual(
      [],
    );
    expect(statSync(tarball).size).toBeLessThan(6e6);
  });

  test("every link of its pages leads somewhere, and none promises the name on npm", () => {
    const pages = filesUnder(installed).filter((name) => name.endsWith(".md"));
    expect(pages).toEqual(expect.arrayContaining(["README.md", "docs/install.md", "docs/api/rl.md"]));
    const dead: string[] = [];
    for (const page of pages) {
      const text = readFileSync(join(installed, page), "utf8");
      for (const [, link] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        const path = join(installed, dirname(page), link!.replace(/#.*$/, ""));
        if (!/^([a-z]+:|#)/.test(link!) && !statSync(path, { throwIfNoEntry: false })) dead.push(`${page}: ${link}`);
      }
      expect(text, page).not.toMatch(/npm (install|i|add)( -\S+)* whetstone\b|npx (--yes|-y) whetstone\b/);
    }
    expect(dead).toEqual([]);
  });

  test("every file that a module names is there", () => {
    const missing: string[] = [];
    for (const name of filesUnder(installed).filter((file) => /^dist\/.+\.(m?js|d\.ts)$/.test(file))) {
      // A type that a comment names is nothing that runs.
      const text = readFileSync(join(installed, name), "utf8").replaceAll(/\/\*\*.*?\*\//gs, "");
      const named = [
        ...text.matchAll(/^(?:import|export)\b[^"';]*?from "(\.[^"]+)"|\bimport\("(\.[^"]+)"\)/gm),
        ...text.matchAll(/new URL\("([^"]+)", import\.meta\.url\)/g),
      ];
      for (const [, first, second] of named) {
        const path = join(installed, dirname(name), (first ?? second)!);
        const candidates = [path, path.replace(/\.ts$/, ".js"), path.replace(/\.js$/, ".d.ts")];
        if (!candidates.some((candidate) => statSync(candidate, { throwIfNoEntry: false })))
          missing.push(`${name}: ${relative(installed, path)}`);
      }
    }
    // The way a checkout runs, which the package does not take.
    expect(missing.filter((line) => !/(ts-loader|worker|prepared)\.mjs$|main\.ts$/.test(line))).toEqual([]);
  });

  test("every package that a module imports is a dependency", () => {
    const { dependencies } = readJson(join(installed, "package.json"));
    const foreign = new Set<string>();
    const imported =
      /^(?:import|export)\b[^\n"]*? from "([^."][^"]*)"|^import "([^."][^"]*)"|\bimport\("([^."][^"]*)"\)/gm;
    for (const name of filesUnder(installed).filter((file) => /^dist\/.+\.(m?js|d\.ts)$/.test(file)))
      for (const [, ...found] of readFileSync(join(installed, name), "utf8").matchAll(imported))
        foreign.add(found.find((specifier) => specifier !== undefined)!);
    const packages = [...foreign].filter((name) => !name.startsWith("node:"));
    expect(packages.length).toBeGreaterThan(3);
    expect(
      packages.filter(
        (name) =>
          !(
            name
              .split("/")
              .slice(0, name.startsWith("@") ? 2 : 1)
              .join("/") in dependencies
          ),
      ),
    ).toEqual([]);
  });

  test("nothing runs when it is installed, and nothing large comes along", () => {
    const packages = readdirSync(join(project, "node_modules"))
      .flatMap((name) =>
        name.startsWith("@") ? readdirSync(join(project, "node_modules", name)).map((sub) => `${name}/${sub}`) : [name],
      )
      .filter((name) => !name.startsWith("."));
    for (const name of packages) {
      const { scripts = {} } = readJson(join(project, "node_modules", name, "package.json"));
      expect(
        Object.keys(scripts).filter((script) => /^(pre|post)?install$/.test(script)),
        name,
      ).toEqual([]);
    }
    const bytes = filesUnder(join(project, "node_modules")).map(
      (name) => statSync(join(project, "node_modules", name)).size,
    );
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(36e6);
  });

  test.skipIf(!wholeRelease)("publint and are-the-types-wrong find nothing", async () => {
    const lint = await run([bin("publint"), "--strict", tarball]);
    expect(lint.stdout + lint.stderr).toContain("All good!");
    const types = await run([bin("attw"), tarball, "--profile", "esm-only", "--format", "json"]);
    expect(types.code, types.stdout.slice(0, 2000)).toBe(0);
  });
});

describe("types", () => {
  const compilers = { "TypeScript 7": "typescript", ...(wholeRelease && { "TypeScript 6": "typescript-api" }) };
  const settings = {
    nodenext: { module: "nodenext", moduleResolution: "nodenext" },
    ...(wholeRelease && { bundler: { module: "esnext", moduleResolution: "bundler" } }),
  };
  const cases = Object.keys(compilers).flatMap((compiler) =>
    Object.keys(settings).map((mode) => [compiler, mode] as const),
  );

  test.each(cases)("%s, %s: strict, declarations checked too, without the types of Node", async (compiler, mode) => {
    const config = join(project, `tsconfig.${mode}.json`);
    const compilerOptions = {
      ...settings[mode as keyof typeof settings],
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      target: "es2023",
      types: [],
      noEmit: true,
    };
    writeFileSync(config, JSON.stringify({ compilerOptions, files: ["strict.ts"] }));
    const tsc = join(root, "node_modules", compilers[compiler as keyof typeof compilers]!, "bin/tsc");
    const { code, stdout } = await run(
      [process.execPath, tsc, "-p", config, ...(compiler === "TypeScript 7" ? ["--singleThreaded"] : [])],
      { cwd: project },
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  });
});

test("an editor shows what every setting means, in the options and in a config", () => {
  const schema = settingsSource();
  const keys = [...schema.matchAll(/^ {2}(\w+)\?:/gm)].map(([, key]) => key!);
  expect(keys.length).toBeGreaterThan(70);
  const lines = keys.map((key) => `settings.${key};`);
  const file = join(project, "hover.ts");
  const text = [
    'import { presetConfig, type TrainingOptions } from "whetstone/rl";',
    'import type {} from "whetstone";',
    'const settings: NonNullable<TrainingOptions["config"]> = { prompts_per_step: 8, completions_per_prompt: 16 };',
    ...lines,
    'presetConfig("nano").learning_rate;',
  ].join("\n");
  writeFileSync(file, text);
  const host: ts.LanguageServiceHost = {
    getCompilationSettings: () => ({ module: ts.ModuleKind.NodeNext, strict: true, types: [], noEmit: true }),
    getScriptFileNames: () => [file],
    getScriptVersion: () => "1",
    getScriptSnapshot: (name) =>
      ts.sys.fileExists(name) ? ts.ScriptSnapshot.fromString(ts.sys.readFile(name)!) : undefined,
    getCurrentDirectory: () => project,
    getDefaultLibFileName: (options) => ts.getDefaultLibFilePath(options),
    fileExists: (name) => ts.sys.fileExists(name),
    readFile: (name) => ts.sys.readFile(name),
  };
  const service = ts.createLanguageService(host);
  expect(service.getSemanticDiagnostics(file).map(({ messageText }) => messageText)).toEqual([]);
  const shown = (place: string) => {
    const info = service.getQuickInfoAtPosition(file, text.indexOf(place) + place.lastIndexOf(".") + 2);
    return ts.displayPartsToString(info?.documentation ?? []);
  };
  // Every key has a default, but for those that are other spellings of one.
  for (const key of keys)
    expect(shown(`settings.${key};`), key).toMatch(/ Default \S|(another way to set|older name of) \w+/);
  expect(shown('presetConfig("nano").learning_rate')).toContain("Adam learning rate. Default 0.00004, nano 0.003.");
});

describe.each(versions)("Node $label", ({ node }) => {
  const at = (env?: Record<string, string>) => ({ cwd: project, env: environmentOf(node, env) });

  test("every entry, from plain JavaScript", async () => {
    const { stdout, stderr } = await run([node, "entries.js"], at());
    expect(stdout, stderr).toBe('["nano-coder","config/no-problems",3000,true,true,"pass",2,"42",[0,0.5],true]\n');
  });

  test("the client, required from CommonJS", async () => {
    const { stdout, stderr } = await run([node, "required.cjs"], at());
    expect(stdout, stderr).toBe("function\n");
  });

  test.skipIf(!wholeRelease)("the client, bundled into one file", { timeout: 180_000 }, async () => {
    const server = await startServe(["engine=simulated", `state_dir=${folder()}`]);
    const alone = folder(); // no packages there
    const common = { entryPoints: [join(project, "bundled.js")], bundle: true, platform: "node" as const };
    buildSync({ ...common, format: "esm", outfile: join(alone, "esbuild.mjs") });
    buildSync({ ...common, format: "cjs", minify: true, keepNames: true, outfile: join(alone, "esbuild.cjs") });
    const rolldown = [
      bin("rolldown"),
      "bundled.js",
      "--platform",
      "node",
      "--format",
      "esm",
      "-o",
      join(alone, "rolldown.mjs"),
    ];
    expect(await run(rolldown, { cwd: project })).toMatchObject({ code: 0 });
    const env = { TINKER_BASE_URL: server.baseUrl, TINKER_API_KEY: server.apiKey };
    try {
      for (const name of ["esbuild.mjs", "esbuild.cjs", "rolldown.mjs"]) {
        const { stdout, stderr } = await run([node, join(alone, name)], { ...at(env), cwd: alone });
        expect(stdout, `${name}: ${stderr}`).toBe("3\n");
        expect(stderr, name).toBe("");
      }
    } finally {
      await server.close();
    }
  });

  test("TypeScript that Node cannot run is graded, and is an environment", async () => {
    const code =
      'enum Base { Ten = 10 }\nimport * as fs from "fs";\nconsole.log(Number(fs.readFileSync(0)) + Base.Ten);';
    const row = JSON.stringify({ language: "typescript", tests: { inputs: ["1\n"], outputs: ["11"] }, code });
    const graded = await run([node, "node_modules/whetstone/dist/cli/whetstone.mjs", "grade", "-"], {
      ...at(),
      input: row,
    });
    expect(JSON.parse(graded.stdout || "{}"), graded.stderr).toMatchObject({ verdict: "pass" });
    const environment = `import { environment } from "whetstone/rl";\nenum Kind { One }\nexport default environment({ problem: Kind.One } as never);\n`;
    writeFileSync(join(project, "mine.ts"), environment);
    const { stderr } = await run(
      [node, "node_modules/whetstone/dist/cli/whetstone.mjs", "eval", "env=./mine.ts"],
      at(),
    );
    expect(stderr).toMatch(/environment\(\{ problem \}\) is not known\. .*mine\.ts:3:\d+/);
  });

  test("the command lists what it has, under the name by which it is called", async () => {
    const { stdout, stderr } = await run(["npx", "whetstone"], at());
    expect(stdout, stderr).toContain("Usage: npx whetstone COMMAND");
    expect(stdout).toMatch(/^ {2}train +train a model/m);
    expect(stdout).not.toMatch(/^ {2}(test|bench) /m);
  });

  test("npx runs it from the file, in a folder without a project, and names itself so that it is found again", async () => {
    const npx = ["npx", "--yes", "--prefer-offline", `--package=${tarball}`, "whetstone", "help", "runs"];
    const { stdout, stderr } = await run(npx, { ...at(), cwd: folder() });
    const named = /^Usage: (.*) runs \[FOLDER\]/.exec(stdout)?.[1];
    expect(named, stderr).toMatch(/_npx\/.*\/whetstone$/);
    expect((await run(["bash", "-c", `${named} --version`], at())).stdout).toMatch(/^whetstone \d/);
    rmSync(join(named!, "../../.."), { recursive: true }); // npx keeps it
  });

  test("without the engine's runtime it says what to do", async () => {
    const env = { WHETSTONE_CACHE: folder(), WHET_NO_INSTALL: "1" };
    const forbidden = await run(["npx", "whetstone", "serve", "port=0"], at(env));
    expect(forbidden).toMatchObject({ code: 1, stdout: "" });
    expect(forbidden.stderr).toMatch(
      /WHET_NO_INSTALL=1 forbids fetching it.*npm install --ignore-scripts onnxruntime-node@\d.*\[cli\/no-engine-runtime\]/,
    );
  });
});

test("the engine runs from the package: worker threads, child process, bundled model and problems", async () => {
  const own = join(folder(), "with engine #1");
  cpSync(project, own, { recursive: true, verbatimSymlinks: true });
  addEngine(own);
  const keys = ["max_steps=1", "eval_every=0", "prompts_per_step=2", "completions_per_prompt=4", "log_path=run"];
  const env = environmentOf(process.execPath, { WHET_NO_INSTALL: "1" });
  const { code, stderr } = await run(["npx", "whetstone", "train", ...keys], { cwd: own, env });
  expect(code, stderr).toBe(0);
  expect(stderr).toMatch(/^ {2}npx whetstone eval 'run=.*\/run' compare=base$/m);
  expect(readdirSync(join(own, "run"))).toContain("checkpoints.jsonl");
});

describe.skipIf(!wholeRelease)("for a release", () => {
  test("npx in an empty folder, with nothing in any cache of ours", { timeout: 400_000 }, async () => {
    const empty = folder();
    const env = environmentOf(process.execPath, { WHETSTONE_CACHE: folder() });
    const command = [
      "npx",
      "--yes",
      `--package=${tarball}`,
      "whetstone",
      "train",
      "max_steps=2",
      "eval_every=0",
      "log_path=run",
    ];
    const { code, stderr } = await run(command, { cwd: empty, env });
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/fetching ONNX Runtime .* \(114 MB, once\)/);
    expect(stderr).toMatch(/^2 steps in /m);
    const cache = filesUnder(env["WHETSTONE_CACHE"]!).map((name) => statSync(join(env["WHETSTONE_CACHE"]!, name)).size);
    console.log(`the engine's runtime: ${Math.round(cache.reduce((sum, size) => sum + size, 0) / 1e6)} MB on disk`);
  });

  test("two first uses at once fetch once", { timeout: 400_000 }, async () => {
    const env = environmentOf(process.execPath, { WHETSTONE_CACHE: folder() });
    const start = () =>
      run(["npx", "whetstone", "serve", "port=0", "exit_with_parent=true", `state_dir=${folder()}`], {
        cwd: project,
        env,
      });
    const both = await Promise.all([start(), start()]);
    const said = both.map(({ stderr }) => stderr).join("");
    expect(said.match(/^whetstone: fetching ONNX Runtime/gm)?.length, said).toBe(1);
    expect(said).toMatch(/waiting for process \d+, which is fetching ONNX Runtime/);
  });

  test.skipIf(!canCutNetwork)("without a network it says so before long", { timeout: 60_000 }, async () => {
    const env = environmentOf(process.execPath, { WHETSTONE_CACHE: folder(), npm_config_cache: folder() });
    const train = [
      process.execPath,
      join(installed, "dist/cli/whetstone.mjs"),
      "train",
      `log_path=${join(folder(), "run")}`,
    ];
    const { code, stderr } = await run([...noNetwork, ...train], { cwd: project, env });
    expect(code).toBe(1);
    expect(stderr).toMatch(/the npm registry cannot be reached \(E[A-Z_]+\).*\[cli\/no-engine-runtime\]/);
  });

  test("a Node that is too old is told so", async () => {
    const old = nodeOf("18");
    const { code, stderr } = await run([old, join(installed, "dist/cli/whetstone.mjs"), "train"], { cwd: project });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^whetstone: Node v18\.\S+ is too old\. Install Node\.js 20\.19 or newer/),
    });
    // And by the launcher of a checkout that is installed.
    const path = programFolder(
      folder(),
      basicPrograms.filter((name) => name !== "node"),
    );
    mkdirSync(join(path, "old"));
    const launched = await run(["./whet", "train"], { cwd: root, env: { PATH: `${dirname(old)}:${path}` } });
    expect(launched.stderr).toMatch(/^whetstone: Node v18\.\S+ is too old/);
  });
});

describeExamples(() => ({ project }));
