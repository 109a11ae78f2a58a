// Sandbox Fusion on both sides: the server's answers as they are on the wire, and the client against servers that fail.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { request } from "undici";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { languages } from "../../src/core/languages/languages.ts";
import { createGrader, normalizeTests } from "../../src/grading/index.ts";
import type { RunCodeResponse } from "../../src/sandbox/fusion/api.ts";
import { FusionClient } from "../../src/sandbox/fusion/client.ts";
import { openFusion } from "../../src/sandbox/fusion/fusion.ts";
import { type FusionServer, type FusionServerOptions, startFusionServer } from "../../src/sandbox/fusion/server.ts";
import { type Jail, openJail } from "../../src/sandbox/jail.ts";
import { job, stdin } from "../sandbox/plain.ts";
import { startWhet } from "./processes.ts";

let jail: Jail;
let server: FusionServer;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  jail = await openJail();
  server = await startFusionServer({ jail, port: 0, concurrency: 2 });
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});
afterAll(async () => {
  await server?.close();
  await jail?.close();
});

async function start(options: Partial<FusionServerOptions> = {}): Promise<FusionServer> {
  const started = await startFusionServer({ jail, port: 0, concurrency: 2, ...options });
  closing.push(() => started.close());
  return started;
}

async function post(body: unknown, base = server.url, headers: Record<string, string> = {}) {
  const response = await request(`${base}/run_code`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const answer = (await response.body.json()) as RunCodeResponse & {
    detail?: unknown;
    limits?: unknown;
    oom?: boolean;
  };
  return { status: response.statusCode, headers: response.headers, answer };
}

const run = async (code: string, more: Record<string, unknown> = {}) =>
  (await post({ code, language: "python", ...more })).answer;

describe("the server answers as Sandbox Fusion does", () => {
  test("success: every field there, absent values null", async () => {
    const answer = await run("print('hi')");
    expect(answer).toEqual({
      status: "Success",
      message: "",
      compile_result: null,
      run_result: {
        status: "Finished",
        execution_time: expect.any(Number),
        return_code: 0,
        stdout: "hi\n",
        stderr: "",
      },
      executor_pod_name: null,
      files: {},
    });
  });

  test("exit codes, signals and exceptions are failures that finished", async () => {
    expect(await run("import sys; print('part'); sys.exit(3)")).toMatchObject({
      status: "Failed",
      run_result: { status: "Finished", return_code: 3, stdout: "part\n" },
    });
    expect((await run("import os; os.kill(os.getpid(), 9)")).run_result?.return_code).toBe(-9);
    const failed = await run("1/0");
    expect(failed.run_result).toMatchObject({ return_code: 1, stderr: expect.stringContaining("ZeroDivisionError") });
    expect((await run("int a = 1")).run_result?.stderr).toContain("SyntaxError");
  });

  test("a timeout keeps what was printed and has no return code", async () => {
    const answer = await run("import time; print('a', flush=True); time.sleep(30)", { run_timeout: "0.5" });
    expect(answer).toMatchObject({
      status: "Failed",
      run_result: { status: "TimeLimitExceeded", return_code: null, stdout: "a\n" },
    });
    expect((await run("print(1)", { run_timeout: 0 })).run_result?.status).toBe("TimeLimitExceeded");
  });

  test("stdin and files go in, files come back, missing ones are left out", async () => {
    const answer = await run("text = open('dir/in.txt').read() + input()\nopen('out.txt', 'w').write(text.upper())", {
      stdin: "x\n",
      files: { "dir/in.txt": "aGVsbG8=", skipped: null },
      fetch_files: ["out.txt", "missing.txt"],
    });
    expect(answer.files).toEqual({ "out.txt": Buffer.from("HELLOX").toString("base64") });
  });

  test("too much output ends the program and says so, instead of a false timeout", async () => {
    const small = await start({ outputBytes: 1000 });
    const { answer } = await post({ code: "while True: print('x' * 100)", language: "python" }, small.url);
    expect(answer).toMatchObject({
      status: "Failed",
      run_result: { status: "Finished", return_code: -9 },
      limits: { stdout: true },
    });
    expect(answer.run_result?.stdout).toHaveLength(1000);
    expect(answer.message).toContain("output limit");
  });

  test("memory: an ordinary failure with a mark", async () => {
    const answer = await run("x = bytearray(800 * 1024 * 1024)", { memory_limit_MB: 512 });
    expect(answer).toMatchObject({ status: "Failed", run_result: { status: "Finished" }, oom: true });
  });

  test("programs of other languages, by the names of Sandbox Fusion; what a compiler says", async () => {
    const sum = languages.javascript.sum;
    const { answer } = await post({ code: sum, language: "nodejs", stdin: "17 25" });
    expect(answer).toMatchObject({ status: "Success", compile_result: null, run_result: { stdout: "42\n" } });
    const wrong = await post({ code: "const x: = 1;", language: "typescript" });
    expect(wrong.answer).toMatchObject({
      status: "Failed",
      compile_result: {
        status: "Finished",
        return_code: 1,
        stderr: expect.stringContaining('solution.ts:1:10: Unexpected "="'),
      },
      run_result: null,
    });
  });

  test("bytes that are not UTF-8 are replaced one by one", async () => {
    expect((await run("import os; os.write(1, b'a\\xffb')")).run_result?.stdout).toBe("a\ufffdb");
  });

  test.each([
    ["no code", { language: "python" }, "code"],
    ["no language", { code: "" }, "language"],
    ["unknown language", { code: "", language: "js" }, "language"],
    ["a language without a runtime here", { code: "", language: "php" }, "language"],
    ["wrong type", { code: "", language: "python", run_timeout: "soon" }, "run_timeout"],
    ["a path out of the folder", { code: "", language: "python", files: { "../x": "" } }, "files"],
    ["an absolute path", { code: "", language: "python", fetch_files: ["/etc/passwd"] }, "fetch_files"],
    ["bad base64", { code: "", language: "python", files: { x: "abc" } }, "files"],
  ])("422 for %s, with the field", async (_, body, field) => {
    const { status, answer } = await post(body);
    expect(status).toBe(422);
    expect(answer.detail).toMatchObject(
      [{ type: expect.any(String), loc: ["body", field], msg: expect.any(String) }].map((one) => ({
        ...one,
        loc: expect.arrayContaining(one.loc),
      })),
    );
  });

  test("other paths and methods, and what is not JSON", async () => {
    expect((await request(`${server.url}/v1/ping`)).statusCode).toBe(200);
    expect(await (await request(`${server.url}/v1/ping`)).body.text()).toBe('"pong"');
    expect(await (await request(`${server.url}/nothing`)).body.json()).toEqual({ detail: "Not Found" });
    expect((await request(`${server.url}/run_code`)).statusCode).toBe(405);
    expect((await post("not json")).status).toBe(422);
  });

  test("links cannot be fetched, and nothing of the host can be read", async () => {
    const answer = await run("import os\nos.symlink('/etc/passwd', 'link')\nopen('/etc/passwd')", {
      fetch_files: ["link"],
    });
    expect([answer.status, answer.files]).toEqual(["Failed", {}]);
  });

  test("a full queue answers 429 at once; a body that is too large 413; a missing token 401", async () => {
    const busy = await start({ concurrency: 1, queue: 1 });
    const slow = { code: "import time; time.sleep(1)", language: "python" };
    const statuses = await Promise.all(
      Array.from({ length: 6 }, async (_, index) => {
        await new Promise((resolve) => setTimeout(resolve, index * 30));
        return post(slow, busy.url);
      }),
    );
    const refused = statuses.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]!.headers["retry-after"]).toBe("1");
    expect(statuses.filter(({ status }) => status === 200).length).toBeGreaterThan(0);

    const small = await start({ maxBodyBytes: 1000, token: "secret" });
    const body = { code: "print(1)", language: "python" };
    expect((await post(body, small.url)).status).toBe(401);
    expect((await post(body, small.url, { authorization: "Bearer wrong" })).status).toBe(401);
    const headers = { authorization: "Bearer secret" };
    expect((await post(body, small.url, headers)).status).toBe(200);
    expect((await post({ ...body, code: "#".repeat(2000) }, small.url, headers)).status).toBe(413);
  });
});

/** A server that answers as the test says; counts what it was asked, and keeps the bodies. */
async function scripted(
  answer: (
    body: string,
    count: number,
  ) => { status: number; body: unknown; headers?: Record<string, string> } | "hang up",
) {
  const bodies: string[] = [];
  const stand: Server = createServer((incoming, response) => {
    let body = "";
    incoming.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    incoming.on("end", () => {
      if (incoming.url?.endsWith("/v1/ping")) return void response.end('"pong"');
      bodies.push(body);
      const reply = answer(body, bodies.length);
      if (reply === "hang up") return void response.destroy();
      response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
      response.end(JSON.stringify(reply.body));
    });
  });
  await new Promise<void>((resolve) => stand.listen(0, "127.0.0.1", resolve));
  closing.push(async () => {
    stand.closeAllConnections();
    await new Promise((resolve) => stand.close(resolve));
  });
  return { url: `http://127.0.0.1:${(stand.address() as AddressInfo).port}`, bodies };
}

const success: RunCodeResponse = {
  status: "Success",
  message: "",
  compile_result: null,
  run_result: { status: "Finished", execution_time: 0.1, return_code: 0, stdout: "", stderr: "" },
  executor_pod_name: null,
  files: {},
};

function client(url: string, retryPausesS = [0.01, 0.01, 0.01]): FusionClient {
  const made = new FusionClient({ url, retryPausesS });
  closing.push(() => made.close());
  return made;
}

describe("the client", () => {
  test.each([
    ["a closed connection", "hang up" as const],
    ["429", { status: 429, body: {}, headers: { "retry-after": "0.01" } }],
    ["502", { status: 502, body: {} }],
    ["SandboxError", { status: 200, body: { ...success, status: "SandboxError", message: "no runner" } }],
    ["an answer that is not its own", { status: 200, body: { hello: 1 } }],
  ])("tries again after %s", async (_, failure) => {
    const stand = await scripted((__, count) => (count < 3 ? failure : { status: 200, body: success }));
    expect((await client(stand.url).runCode({ code: "", language: "python" })).status).toBe("Success");
    expect(stand.bodies).toHaveLength(3);
    expect(new Set(stand.bodies).size).toBe(1);
  });

  test.each([400, 401, 413, 422])("does not repeat what the server refuses with %d", async (status) => {
    const stand = await scripted(() => ({ status, body: { detail: "no" } }));
    await expect(client(stand.url).runCode({ code: "", language: "python" })).rejects.toMatchObject({
      code: "sandbox/fusion-refused",
    });
    expect(stand.bodies).toHaveLength(1);
  });

  test("gives up after the last try with an error that is no verdict", async () => {
    const stand = await scripted(() => ({ status: 503, body: {} }));
    await expect(client(stand.url).runCode({ code: "", language: "python" })).rejects.toMatchObject({
      code: "sandbox/fusion-failed",
    });
    expect(stand.bodies).toHaveLength(4);
  });

  test("a failed program is an answer, not a failure of the server", async () => {
    const stand = await scripted(() => ({ status: 200, body: { ...success, status: "Failed" } }));
    expect((await client(stand.url).runCode({ code: "", language: "python" })).status).toBe("Failed");
    expect(stand.bodies).toHaveLength(1);
  });

  test("spreads work over instances and leaves a dead one out", async () => {
    const ok = () => ({ status: 200, body: success });
    const stands = [await scripted(ok), await scripted(ok)];
    const dead = "http://127.0.0.1:9";
    const both = client(`${stands[0]!.url}/run_code, ${dead}/run_code ,${stands[1]!.url}/`);
    await Promise.all(Array.from({ length: 24 }, () => both.runCode({ code: "", language: "python" })));
    const counts = stands.map(({ bodies }) => bodies.length);
    expect(counts[0]! + counts[1]!).toBe(24);
    expect(Math.min(...counts)).toBeGreaterThan(3);
  });

  test("says within seconds that nobody is there, and how to start a server", async () => {
    await expect(openFusion({ url: "http://127.0.0.1:9/run_code" })).rejects.toMatchObject({
      code: "sandbox/fusion-unreachable",
      message: expect.stringContaining("docker run"),
    });
    expect(() => new FusionClient({ url: "localhost:8080" })).toThrow(
      expect.objectContaining({ code: "sandbox/fusion-url" }),
    );
  });
});

const sum = {
  code: "print(sum(map(int, input().split())))",
  tests: normalizeTests({
    inputs: ["1 2", "3 4", "5 6", "7 8", "9 10", "11 12"],
    outputs: ["3", "7", "11", "15", "19", "23"],
  }).tests,
};

describe("grading over HTTP", () => {
  beforeEach((context) => {
    if (jail.description.kind === "landlock")
      context.skip("the jail of this machine cannot start processes, which the launcher needs");
  });

  test("tests travel in the chunks that are decided together, and no expected output is in any body", async () => {
    const marker = "EXPECTED-91c2";
    const bodies: string[] = [];
    const relay = createServer((incoming, response) => {
      const pieces: Buffer[] = [];
      incoming.on("data", (piece: Buffer) => pieces.push(piece));
      incoming.on("end", async () => {
        if (incoming.method === "POST") bodies.push(Buffer.concat(pieces).toString());
        const answer = await request(`${server.url}${incoming.url}`, {
          method: incoming.method as "POST",
          ...(incoming.method === "POST"
            ? { body: Buffer.concat(pieces), headers: { "content-type": "application/json" } }
            : {}),
        });
        response.writeHead(answer.statusCode, { "content-type": "application/json" });
        response.end(Buffer.from(await answer.body.arrayBuffer()));
      });
    });
    await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
    closing.push(() => new Promise((resolve) => relay.close(resolve)));
    const sandbox = await openFusion({ url: `http://127.0.0.1:${(relay.address() as AddressInfo).port}` });
    closing.push(() => sandbox.close());
    const inputs = Array.from({ length: 20 }, (_, index) => `INPUT-${index}`);
    const { tests } = normalizeTests({ inputs, outputs: inputs.map((text) => `${text} ${marker}`) });
    const code = `import heapq; print(input(), "EXPECTED" + "-91c2")`;
    const result = await createGrader({ sandbox }).grade({ problem: { tests }, code });
    expect([result.verdict, result.passed]).toEqual(["pass", 20]);
    const jobs = await Promise.all(bodies.map(unpackJob));
    expect(jobs.map((job) => job.tests.length)).toEqual([16, 4]);
    expect(JSON.stringify(jobs)).toContain("INPUT-19");
    expect(bodies.join() + JSON.stringify(jobs)).not.toContain(marker);
    // A server starts it beside the packages that it seems to import: the program's own, and of the launcher's words none but these.
    const words = languages.python.packages!.importedWords((JSON.parse(bodies[0]!) as { code: string }).code);
    expect([...words].sort()).toEqual(["91c2", "EXPECTED", "base64", "heapq", "import", "input", "print", "zlib"]);
  });

  test("a program that ends its launcher fails, and the next one is graded", async () => {
    const sandbox = await openFusion({ url: server.url });
    closing.push(() => sandbox.close());
    const grader = createGrader({ sandbox, limits: { rewardTimeoutS: 2 } });
    const killers = [
      "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nprint(3)",
      "import os, signal\nfor pid in range(2, 60):\n    try:\n        if pid != os.getpid(): os.kill(pid, signal.SIGKILL)\n    except OSError: pass\nprint(3)",
      "import os, signal\nos.kill(-1, signal.SIGKILL)\nprint(3)",
    ];
    for (const code of killers) {
      const result = await grader.grade({ problem: { tests: sum.tests }, code });
      expect([result.verdict, result.reward], `${result.status} ${result.message}`).toEqual(["fail", 0]);
    }
    expect((await grader.grade({ problem: { tests: sum.tests }, code: sum.code })).verdict).toBe("pass");
  });

  test("a result that is lost with one program is its failure; one that the server loses is no verdict", async () => {
    // What a program does that outlives its test and removes the result file, done from outside: the file is gone from the answer.
    let loses: (body: string, count: number) => boolean = () => false;
    let count = 0;
    const stand = createServer((incoming, response) => {
      const pieces: Buffer[] = [];
      incoming.on("data", (piece: Buffer) => pieces.push(piece));
      incoming.on("end", async () => {
        const body = Buffer.concat(pieces);
        const answer = await request(`${server.url}${incoming.url}`, {
          method: incoming.method as "POST",
          ...(incoming.method === "POST" ? { body, headers: { "content-type": "application/json" } } : {}),
        });
        const text = await answer.body.text();
        const lost = incoming.method === "POST" && loses(body.toString(), count++);
        response.writeHead(answer.statusCode, { "content-type": "application/json" });
        response.end(lost ? JSON.stringify({ ...(JSON.parse(text) as RunCodeResponse), files: {} }) : text);
      });
    });
    await new Promise<void>((resolve) => stand.listen(0, "127.0.0.1", resolve));
    closing.push(() => new Promise((resolve) => stand.close(resolve)));
    const sandbox = await openFusion({ url: `http://127.0.0.1:${(stand.address() as AddressInfo).port}` });
    closing.push(() => sandbox.close());
    const gradeWith = (name: string) =>
      createGrader({ sandbox }).grade({ problem: { tests: sum.tests }, code: `import ${name}\n${sum.code}` });
    loses = (body) => body.includes("secrets"); // whatever the request, this program's result is gone
    expect(await gradeWith("secrets")).toMatchObject({ verdict: "fail", status: "no_result", reward: 0 });
    expect(await gradeWith("string")).toMatchObject({ verdict: "pass" });
    loses = () => true;
    expect(await gradeWith("calendar")).toMatchObject({ verdict: "ungraded" });
    loses = (_, number) => number % 2 === 0; // every other one
    count = 0;
    expect(await gradeWith("textwrap")).toMatchObject({ verdict: "pass" });
    loses = (_, number) => number < 2;
    count = 0;
    expect(await gradeWith("heapq")).toMatchObject({ verdict: "pass" });
  });

  test("a process that a test left is found wherever its number lies", async () => {
    const launcher = readFileSync(new URL("../../src/sandbox/fusion/one_test.py", import.meta.url), "utf8");
    // The child's number is lower than that of the test: numbers ran once around.
    const code = `${launcher}
import ctypes
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    time.sleep(60)
while os.getpgid(child) != child: time.sleep(0.001)
test = os.fork()
if test == 0: os._exit(0)
os.waitpid(test, 0)
print(test > child, children_of(os.getpid()), kill_descendants((os.getpid(),), test))
`;
    const answer = await run(code, { run_timeout: 60 });
    expect(answer.run_result?.stdout, answer.run_result?.stderr ?? "").toBe("True None True\n");
  });

  test("a program that stops what enforces its time is late, where it can", () => {
    const launcher = readFileSync(new URL("../../src/sandbox/fusion/one_test.py", import.meta.url), "utf8");
    const code = `${launcher}
import types
def run_test(*_):
    supervisor = os.getppid()
    os.kill(supervisor, signal.SIGSTOP)
    time.sleep(0.9)
    if os.fork() == 0:
        time.sleep(0.2)
        os.kill(supervisor, signal.SIGCONT)
    os._exit(0)
limits = dict(wallMs=500, cpuMs=9000, outputBytes=99, memoryBytes=1 << 32, fileBytes=99, openFiles=99, processes=99)
outcome = run_one(types.SimpleNamespace(run_test=run_test), dict(limits=limits, source="", name="x.py"), {}, dict(kind="stdin", stdin=""), None, (os.getpid(),))[0]
print(outcome["status"], outcome["exitCode"])
`;
    const { stdout, stderr } = spawnSync("python3", ["-c", code], { encoding: "utf8" });
    expect(stdout, stderr).toBe("time-limit 0\n");
  });

  test("a program cannot forge, keep or read the result file", async () => {
    const sandbox = await openFusion({ url: server.url });
    closing.push(() => sandbox.close());
    const grader = createGrader({ sandbox, limits: { rewardTimeoutS: 3 } });
    const forgers = [
      "import os\nfor folder in ['.', '..', '/tmp', '/tmp/work', os.path.expanduser('~')]:\n    try: open(folder + '/whetstone-result.bin', 'wb').write(b'x' * 100)\n    except OSError: pass\nprint(0)",
      "import os\nfor folder in ['.', '..']:\n    try: os.symlink('/etc/passwd', folder + '/whetstone-result.bin')\n    except OSError: pass\nprint(0)",
      "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(20)\n        os._exit(0)\n    os._exit(0)\nprint(0)",
      'import os\nfor fd in range(3, 60):\n    try: os.write(fd, b\'V["i","3"]\')\n    except OSError: pass\nprint(0)',
    ];
    for (const code of forgers) {
      const result = await grader.grade({ problem: { tests: sum.tests }, code });
      expect([result.verdict, result.status]).toEqual(["fail", "wrong_answer"]);
    }
  });

  test("nothing survives from one test to the next", async () => {
    const sandbox = await openFusion({ url: server.url });
    closing.push(() => sandbox.close());
    const inputs = ["a", "a", "a", "a", "a"];
    const { tests } = normalizeTests({ inputs, outputs: inputs.map(() => "0") });
    const code = [
      "import os, builtins",
      "seen = getattr(builtins, 'seen', 0)",
      "folders = ['.', '/tmp', '/dev/shm', '/var/tmp']",
      "seen += sum(os.path.exists(folder + '/left') for folder in folders)",
      "for folder in folders:",
      "    try: open(folder + '/left', 'w').close()",
      "    except OSError: pass",
      "builtins.seen = 1",
      "print(seen)",
    ].join("\n");
    const result = await createGrader({ sandbox }).grade({ problem: { tests }, code });
    expect([result.verdict, result.passed]).toEqual(["pass", 5]);
  });

  test("a server that stops in the middle of a batch leaves programs ungraded, never wrong; back again, all are graded", async () => {
    const first = await startWhet("sandbox", ["port=0"]);
    const port = new URL(first.url).port;
    const sandbox = await openFusion({ url: first.url, retryPausesS: [0.05, 0.05, 0.05] });
    closing.push(() => sandbox.close());
    const grader = createGrader({ sandbox, concurrency: 4 });
    const batch = (offset: number) =>
      Array.from({ length: 16 }, (_, index) =>
        grader.grade({
          // The verdicts of one problem come together: four problems.
          problem: { tests: sum.tests.slice(Math.floor(index / 4)) },
          code: `import time; time.sleep(0.05)\n${sum.code} # ${offset + index}`,
        }),
      );
    const results = batch(0);
    await Promise.race(results);
    await first.stop("SIGKILL");
    const verdicts = (await Promise.all(results)).map(({ verdict, reward }) => `${verdict} ${reward}`);
    expect(verdicts).toContain("ungraded null");
    expect(verdicts.filter((verdict) => verdict !== "pass 1" && verdict !== "ungraded null")).toEqual([]);
    const second = await startWhet("sandbox", [`port=${port}`]);
    closing.push(() => second.stop());
    // Set aside for a moment after its failures, then asked again.
    let again = await Promise.all(batch(0));
    for (let round = 0; round < 20 && again.some(({ verdict }) => verdict === "ungraded"); round++) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      again = await Promise.all(batch(0));
    }
    expect(again.map(({ verdict }) => verdict)).toEqual(Array(16).fill("pass"));
  });

  test("an aborted grading frees its request", async () => {
    const sandbox = await openFusion({ url: server.url, maxConcurrency: 1 });
    closing.push(() => sandbox.close());
    const grader = createGrader({ sandbox });
    const controller = new AbortController();
    const endless = grader.grade(
      { problem: { tests: sum.tests }, code: "while True: pass" },
      { signal: controller.signal },
    );
    setTimeout(() => controller.abort(new Error("enough")), 300);
    await expect(endless).rejects.toThrow("enough");
    expect((await grader.grade({ problem: { tests: sum.tests }, code: sum.code })).verdict).toBe("pass");
  });

  test("processor time counts for all processes of a test together", async () => {
    const sandbox = await openFusion({ url: server.url });
    closing.push(() => sandbox.close());
    const source = (forks: number) => `import os, time
for _ in range(${forks}):
    if os.fork() == 0:
        while time.process_time() < 0.2: pass
        os._exit(0)
    os.wait()
print("ok")`;
    const limits = { cpuMs: 500, wallMs: 20_000 };
    const runs = [1, 4].map((forks) => sandbox.run(job(source(forks), [stdin("")], limits), () => "continue"));
    const [one, four] = (await Promise.all(runs)).flat();
    expect([one!.status, four!.status]).toEqual(["finished", "time-limit"]);
    expect(four!.cpuMs).toBeGreaterThan(700);
  });

  test("an exit status decides nothing: a program that ends the process with 0 fails", async () => {
    const attacks = [
      "import os; os._exit(0)",
      "import atexit, os\natexit.register(lambda: os._exit(0))",
      "import json, os\nprint(open('test_cases.txt').read()[:0]); os._exit(0)",
      "import builtins\nbuiltins.all = lambda results: True",
    ];
    const sandbox = await openFusion({ url: server.url });
    closing.push(() => sandbox.close());
    const grader = createGrader({ sandbox });
    for (const code of attacks)
      expect((await grader.grade({ problem: { tests: sum.tests }, code })).verdict).toBe("fail");
  });
});

/** The job inside a request's body. */
async function unpackJob(body: string): Promise<{ tests: unknown[] }> {
  const { inflateSync } = await import("node:zlib");
  const { files } = JSON.parse(body) as { files: Record<string, string> };
  return JSON.parse(inflateSync(Buffer.from(files["whetstone-job.bin"]!, "base64")).toString()) as { tests: unknown[] };
}
