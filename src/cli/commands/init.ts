// `./whet init [DIR]`: a small project to start from. Nothing that is there is overwritten.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { ConfigError, messageOf } from "../../core/errors.ts";
import { makeFolder, removeEmpty } from "../../core/files.ts";
import { whet } from "../../core/program.ts";
import { type Command, helpOf } from "../command.ts";
import { exampleProblems } from "../problems/example-problems.ts";

export const command: Command = {
  help: () =>
    helpOf({
      usage: "init [DIR] [--env]",
      about: [
        "Writes a small project into DIR, or into this folder: problems to train on and to measure with, a config file for them, and a",
        "README that says what to type next. With --env: an environment, a task of one's own in several turns, in one TypeScript file. Files",
        "that are there stay as they are: init refuses to overwrite any.",
      ],
    }),
  async run(args) {
    const isEnv = (word: string) => /^(--)?env(=true)?$/.test(word) && word !== "env";
    const words = args.filter((word) => !isEnv(word));
    if (words.length > 1 || words.some((word) => word.startsWith("-") || word.includes("=")))
      throw new ConfigError(
        "config/stray-word",
        `${whet} init wants one folder at most, and --env for an environment, not "${words.join(" ")}".`,
      );
    const folder = words[0] ?? ".";
    const withEnv = words.length < args.length;
    const files = withEnv ? environmentFiles() : projectFiles(folder);
    const there = Object.keys(files).filter((name) => existsSync(join(folder, name)));
    if (there.length > 0)
      throw new ConfigError(
        "config/init-exists",
        `${there.join(", ")} ${there.length === 1 ? "is" : "are"} already in ${folder}, and init overwrites nothing. Name another folder: ${whet} init my-project`,
      );
    let made: string[] = [];
    const written: string[] = [];
    try {
      made = makeFolder(folder);
      for (const [name, text] of Object.entries(files)) {
        const file = join(folder, name);
        writeFileSync(file, "", { flag: "wx" });
        written.push(file);
        writeFileSync(file, text);
      }
    } catch (error) {
      for (const file of written) rmSync(file, { force: true });
      removeEmpty(made);
      throw new ConfigError(
        "config/init-folder",
        `${folder} cannot be written: ${messageOf(error)}. Name another one.`,
        {
          cause: error,
        },
      );
    }
    console.log(`wrote ${Object.keys(files).join(", ")} into ${folder}. Next:`);
    for (const line of withEnv ? environmentCommands(folder) : commandsFor(folder)) console.log(`  ${line}`);
    return 0;
  },
};

/** One episode, then a run in which the bundled model visibly learns. */
function environmentCommands(folder: string): string[] {
  const file = relative(".", join(folder, "guess.ts"));
  const named = file.startsWith("/") ? file : `./${file}`;
  return [
    `${whet} sample env=${named} model_name=nano-coder`,
    `${whet} train env=${named} learning_rate=1e-3 max_steps=60`,
  ];
}

/** The example that docs/environments.md begins with. */
function environmentFiles(): Record<string, string> {
  const example = readFileSync(new URL("../../../examples/guess.ts", import.meta.url), "utf8");
  return { "guess.ts": example.replace(/^\/\/.*\n/, "") };
}

/** What to type, in the order of a first run. */
function commandsFor(folder: string): string[] {
  const at = (name: string) => relative(".", join(folder, name)) || name;
  return [
    `${whet} certify ${at("train.jsonl")}`,
    `${whet} train @${at("run.json")} --dry-run`,
    `${whet} train @${at("run.json")}`,
    `${whet} eval run=${at(join("runs", "first"))}`,
  ];
}

/** Every file of the project by its name. */
function projectFiles(folder: string): Record<string, string> {
  const [certify, dryRun, train, evaluate] = commandsFor(folder);
  const lines = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  return {
    "train.jsonl": lines(exampleProblems.train),
    "test.jsonl": lines(exampleProblems.test),
    "run.json": `{
  // Keys of \`${whet} train\`; those on the command line win. Paths that begin with ./ are relative to this file.
  "train_data": "./train.jsonl",
  "test_data": "./test.jsonl", // never trained on
  "log_path": "./runs/first",

  // A step: 5 problems, 16 answers each.
  "prompts_per_step": 5,
  "completions_per_prompt": 16,
  "max_steps": 20,
  "eval_every": 10,
  "save_every": 10,
}
`,
    ".gitignore": ".env\nruns/\n",
    "README.md": `# Problems for a model to learn

\`train.jsonl\` is trained on, \`test.jsonl\` is measured with. One line is one problem:

- \`question\`: what is asked;
- \`tests\`: inputs and outputs of a program, or arguments and results of a function (\`fn_name\`);
- \`starter_code\`: what the answer begins with, where there is something;
- \`solutions\`: programs that are right, for \`certify\` alone; the model never sees them;
- \`id\`: a name of your choice.

\`\`\`sh
# Are the problems sound? Solutions pass, programs that know nothing fail.
${certify}

# Everything up to the first billed call: sandbox, engine, data, forecast.
${dryRun}

# Train. Stop with Ctrl-C; the same command goes on, or ${whet} resume from anywhere.
${train}

# How good is it on the test problems?
${evaluate}
\`\`\`

Replace the problems by your own; a few hundred are a good start. Without TINKER_API_KEY the bundled model is trained, which is
small: it knows list, text and number exercises like these and little else. With a key in \`.env\` (TINKER_API_KEY=…) a hosted model is trained.
`,
  };
}
