// A jail for an agent: its project and its problem to read, an empty folder to write, and of the network nothing but the endpoint, which
// comes in as a socket file. When this process ends, in whatever way, the kernel ends the jail and everything in it.
import { realpathSync } from "node:fs";
import { connect, createServer } from "node:net";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { ConfigError } from "../core/errors.ts";
import { findOnPath } from "../core/languages/machine.ts";
import { systemFiles } from "../sandbox/outer.ts";

/** A socket file that leads to the endpoint. */
export interface EndpointSocket {
  path: string;
  /** Of the endpoint, outside and inside. */
  port: number;
  close(): void;
}

const host = "127.0.0.1";
const maxWrittenBytes = 256 << 20;

/** Opens one in a folder. */
export async function openSocket(folder: string, baseURL: string): Promise<EndpointSocket> {
  const path = join(folder, "endpoint.sock");
  const port = Number(new URL(baseURL).port);
  const server = createServer((socket) => {
    const onward = connect(port, host);
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      from.pipe(to);
      from.on("error", () => to.destroy()).on("close", () => to.destroy());
    }
  });
  await new Promise<void>((listening, reject) => server.once("error", reject).listen(path, listening));
  server.unref();
  return { path, port, close: () => server.close() };
}

/** Runs inside: the endpoint's port leads to the socket file, and the command runs beside it. */
const forward = `
const { connect, createServer } = require("node:net");
const [port, path, ...command] = process.argv.slice(1);
createServer((socket) => {
  const onward = connect(path);
  for (const [from, to] of [[socket, onward], [onward, socket]]) {
    from.pipe(to);
    from.on("error", () => to.destroy()).on("close", () => to.destroy());
  }
}).listen(Number(port), "${host}", () => {
  require("node:child_process").spawn(command[0], command.slice(1), { stdio: "inherit" })
    .on("error", (error) => { console.error(String(error)); process.exit(127); })
    .on("exit", (code, signal) => process.exit(signal ? 128 : code));
});
`;

/** The command line of an agent in its jail. */
export function jailedCommand(parts: {
  command: string;
  cwd: string;
  problem: string;
  socket: EndpointSocket;
}): string[] {
  const { command, cwd, problem, socket } = parts;
  const node = realpathSync(process.execPath);
  const shown = [cwd, problem, dirname(dirname(node))].filter((path) => !path.startsWith("/usr/"));
  return [
    jailProgram(cwd),
    ...["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"],
    ...["--uid", "65534", "--gid", "65534", ...systemFiles("/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl")],
    ...["--proc", "/proc", "--dev", "/dev", "--size", String(maxWrittenBytes), "--tmpfs", "/tmp"],
    ...shown.flatMap((path) => ["--ro-bind", path, path]),
    ...["--ro-bind", socket.path, socket.path, "--chdir", cwd, "--"],
    ...[node, "-e", forward, String(socket.port), socket.path, "/bin/sh", "-c", command],
  ];
}

/** bubblewrap, where agents can be run in it. */
export function jailProgram(cwd: string): string {
  const program = findOnPath("bwrap");
  if (process.platform !== "linux" || program === undefined)
    throw new ConfigError(
      "config/no-agent-sandbox",
      "agent_sandbox=true needs Linux and bubblewrap (bwrap). Install it (apt install bubblewrap), or run trusted agents with agent_sandbox=false.",
    );
  const home = resolve(homedir());
  if (cwd === "/" || home === cwd || home.startsWith(`${cwd}/`))
    throw new ConfigError(
      "config/no-agent-sandbox",
      `agent_sandbox=true shows the agent the folder that the command is run in, and ${cwd} is everything that you have. Go to the agent's own folder, and give the same command there.`,
    );
  return program;
}
