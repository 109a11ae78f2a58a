// `./whet sandbox`: the Sandbox-Fusion-compatible server over the embedded jail, by itself.

import { availableParallelism } from "node:os";
import { z } from "zod";
import { startFusionServer } from "../../sandbox/fusion/server.ts";
import { openJail } from "../../sandbox/jail.ts";
import { pythonWith } from "../../sandbox/packages.ts";
import { commandOf } from "../command.ts";
import { interruptible } from "../terminal/interrupt.ts";

const SandboxOptions = z.strictObject({
  port: z.int().min(0).max(65_535).default(8080).describe("0 takes any free port"),
  host: z.string().default("127.0.0.1").describe("address to listen on; others than loopback need a token"),
  sandbox_python: z.string().optional().describe("interpreter or virtual environment that runs the programs"),
  sandbox_packages: z
    .string()
    .default("")
    .describe(
      "packages that programs may import, separated by commas; installed on first use (peers' harnesses want numpy)",
    ),
  concurrency: z.int().positive().default(availableParallelism()).describe("programs at the same moment"),
  queue: z.int().min(0).default(256).describe("requests that may wait; more get 429 and Retry-After"),
  memory_mb: z.int().positive().default(4096).describe("address space of a program that names no limit, in MiB"),
  output_kb: z.int().positive().default(1024).describe("kept of stdout and of stderr, in KiB; more ends the program"),
  body_mb: z.int().positive().default(32).describe("largest request, in MiB"),
  fetch_mb: z.int().positive().default(32).describe("fetched files of one answer, in MiB"),
  token: z
    .string()
    .optional()
    .describe(
      "wanted as a bearer token; default the variable SANDBOX_TOKEN; needed on other addresses than loopback, unless none",
    ),
});

export const command = commandOf(SandboxOptions, {
  usage: "sandbox [key=value …]",
  about: ["Serves Sandbox Fusion's POST /run_code and GET /v1/ping for python, each program in the embedded jail."],
  run: ({ options }) => interruptible((signal) => serve(options, signal)),
});

async function serve(options: z.output<typeof SandboxOptions>, signal: AbortSignal): Promise<number> {
  const given = options.token ?? process.env["SANDBOX_TOKEN"];
  const open = given === "none";
  const say = (line: string) => console.error(`whetstone: ${line}`);
  const python = await pythonWith(options.sandbox_packages, options.sandbox_python, say);
  const jail = await openJail({ slots: options.concurrency, python });
  try {
    const server = await startFusionServer({
      jail,
      port: options.port,
      host: options.host,
      concurrency: options.concurrency,
      queue: options.queue,
      memoryBytes: options.memory_mb * 1024 ** 2,
      outputBytes: options.output_kb * 1024,
      maxBodyBytes: options.body_mb * 1024 ** 2,
      fetchBytes: options.fetch_mb * 1024 ** 2,
      token: open ? undefined : given || undefined,
      open,
    });
    try {
      console.error(`whetstone: programs run in ${jail.description.summary}`);
      if (jail.description.kind === "landlock")
        console.error(
          "whetstone: at this level programs cannot start processes, so Whetstone's own grader cannot work through this server.",
        );
      if (open) console.error("whetstone: token=none: everyone who reaches this address can run programs.");
      console.log(`whetstone: serving Sandbox Fusion's API at ${server.url}`);
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    } finally {
      await server.close();
    }
  } finally {
    await jail.close();
  }
  return 0;
}
