// A process that runs one command line of `./whet` after another, for command-process.ts: in a folder and an environment of their own, with
// what each writes as messages to the process that asked. The modules stay loaded, which is all that sets it apart.
import { preparedModule } from "../../src/core/prepared.mjs";

const prepared = process.features.typescript
  ? undefined
  : await preparedModule(new URL("../../src/cli/main.ts", import.meta.url));
if (prepared === undefined) await import("../../src/core/ts-loader.mjs");
const { runCommandLine } = await import(prepared ?? "../../src/cli/main.ts");

const umask = process.umask();
for (const name of ["stdout", "stderr"])
  process[name].write = (chunk, encoding, written) => {
    const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
    process.send({ [name]: text }, typeof encoding === "function" ? encoding : written);
    return true;
  };

process.on("message", async ({ args, env, cwd }) => {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  process.argv.splice(2, process.argv.length, ...args);
  process.chdir(cwd);
  process.umask(umask);
  process.exitCode = undefined;
  const code = await runCommandLine(process.argv.slice(2));
  process.send({ code: process.exitCode ?? code });
});
process.on("disconnect", () => process.exit());
