// An agent is any command: it gets its problem and its address, and it ends with all that it has started.
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { temporaryFolders } from "../../test/support/folders.ts";
import { type AgentRun, runAgent } from "./run-agent.ts";

const newFolder = temporaryFolders();
const endpoint = { baseURL: "", apiKey: "secret", model: "m" };
const server = createServer((request, response) => response.end(`${request.url} ${request.headers.authorization}`));
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  endpoint.baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/s/v1`;
});
afterAll(() => void server.close());

const agent = (command: string, more: Partial<AgentRun> = {}) =>
  runAgent({
    command,
    cwd: newFolder(),
    sandbox: false,
    endpoint,
    input: "The problem.",
    files: {},
    signal: new AbortController().signal,
    ...more,
  });

/** Processes that have this word in their command line. */
const running = (word: string): string[] =>
  readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").includes(word);
    } catch {
      return false;
    }
  });
const noneRunning = (word: string) => vi.waitFor(() => expect(running(word)).toEqual([]), { timeout: 10_000 });

/** Sleeps for a time by which it is found; the second one leaves the group and its parents. */
const children = (seconds: string) =>
  `sleep ${seconds} & setsid sh -c 'sleep ${seconds} & sleep ${seconds}' >/dev/null 2>&1 &`;

test.each([false, true])(
  "sandbox=%s: it has the problem on its input and as files, and the address in its environment",
  async (sandbox) => {
    const command = `cat; echo; cat $PROBLEM_DIR/a/b.txt; node -e '
    const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key, OPENAI_MODEL: model } = process.env;
    fetch(url + "/models", { headers: { authorization: key } }).then((r) => r.text()).then((text) => console.log(text, model))'`;
    const result = await agent(command, { sandbox, files: { "a/b.txt": "A file.\n" } });
    expect(result).toMatchObject({ code: 0, stderr: "", stdout: "The problem.\nA file.\n/s/v1/models secret m\n" });
  },
);

test("a failure is told with its code and the end of what it said", async () => {
  expect(await agent("echo no >&2; exit 3")).toMatchObject({ code: 3, stderr: "no\n" });
  expect((await agent("yes | head -c 5000000")).isCut).toBe(true);
});

/** A time that no other process sleeps for. */
const newWord = () => String(randomInt(1e8, 1e9));

test("what it leaves behind is killed, also what left its group", async () => {
  const word = newWord();
  const { stdout } = await agent(`${children(word)} echo done`);
  expect(stdout).toBe("done\n");
  await noneRunning(word);
});

test("it is killed with its children when its episode is over", async () => {
  const word = newWord();
  const controller = new AbortController();
  const ended = agent(`${children(word)} sleep ${word}`, { signal: controller.signal });
  await vi.waitFor(() => expect(running(word).length).toBeGreaterThan(3));
  controller.abort(new Error("over"));
  await expect(ended).rejects.toThrow("over");
  await noneRunning(word);
});

test.each([false, true])("sandbox=%s: it is killed with its children when this process is killed", async (sandbox) => {
  const word = newWord();
  const module = fileURLToPath(new URL("./run-agent.ts", import.meta.url));
  const loader = fileURLToPath(new URL("../core/ts-loader.mjs", import.meta.url));
  const run = { command: `${children(word)} sleep ${word}`, cwd: newFolder(), sandbox, endpoint, input: "", files: {} };
  const program = `import(${JSON.stringify(module)}).then(({ runAgent }) => runAgent({ ...${JSON.stringify(run)}, signal: new AbortController().signal }))`;
  const whole: ChildProcess = spawn(process.execPath, ["--import", loader, "-e", program], { stdio: "inherit" });
  await vi.waitFor(() => expect(running(word).length).toBeGreaterThan(3), { timeout: 10_000 });
  whole.kill("SIGKILL");
  await noneRunning(word);
});

test("in the jail it reads its project and its problem, writes its own folder, and reaches nothing but the endpoint", async () => {
  const cwd = newFolder();
  writeFileSync(join(cwd, "mine.txt"), "mine");
  mkdirSync(join(cwd, "sub"));
  const other = createServer((_, response) => response.end("reached")).listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const probe = `cat mine.txt; echo ok > /tmp/x && cat /tmp/x
    (echo no > new.txt) 2>/dev/null || echo "read-only"
    ls /home /root /work 2>/dev/null | head -1
    node -e '
      const probe = (url) => fetch(url).then((r) => r.text(), (error) => error.cause?.code);
      Promise.all([probe("http://127.0.0.1:${port}"), probe("http://1.1.1.1"), probe("http://example.com")]).then((all) => console.log(all.join(" ")))'`;
  const { stdout } = await agent(probe, { cwd, sandbox: true });
  other.close();
  expect(stdout).toMatch(/^mineok\nread-only\nECONNREFUSED (ENETUNREACH|EHOSTUNREACH) (EAI_AGAIN|ENOTFOUND)\n$/);
  expect(existsSync(join(cwd, "new.txt"))).toBe(false);
});
