// Programs of every language that this machine has: those that people write pass, those that want more than they are given fail, get no verdict that
// is an outage, and harm nobody beside them. A few of each by default; WHET_LANGUAGES=1 runs all, at both levels.
import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LanguageName, languageNames, languageOf, toolsOf } from "../../src/core/languages/languages.ts";
import { createGrader, type Grader, normalizeTests } from "../../src/grading/index.ts";
import { type Jail, type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { defaultLimits } from "../../src/sandbox/sandbox.ts";
import { honest, tasks } from "./honest.ts";
import { aimedAt, hostile } from "./hostile.ts";

const whole = process.env["WHET_LANGUAGES"] !== undefined;
const levels: readonly JailLevel[] = ["jail", "landlock"];
const others = languageNames.filter((name) => name !== "python");

/** Every so many programs of a list, so that `few` are left. */
const some = <T>(all: readonly T[], few: number): readonly T[] =>
  whole ? all : all.filter((_, index) => index % Math.ceil(all.length / few) === 0);

const secret = join(tmpdir(), `whetstone-secret-${randomUUID()}`);
const content = `secret ${randomUUID()}`;
beforeAll(() => writeFileSync(secret, content, { mode: 0o644 }));
afterAll(() => rmSync(secret, { force: true }));

describe.each(levels)("level %s", (level) => {
  let jail: Jail;
  let grader: Grader;
  beforeAll(async () => {
    jail = await openJail({ levels: [level], slots: 2 });
    grader = createGrader({ sandbox: jail, limits: { rewardTimeoutS: 3, memoryBytes: 512 * 1024 ** 2 } });
  }, 60_000);
  afterAll(() => jail.close());

  const gradeIn = (
    language: LanguageName,
    code: string,
    task: { inputs: readonly string[]; outputs: readonly string[] },
  ) => grader.grade({ problem: { tests: normalizeTests(task).tests, languages: [language] }, code });

  test.each(others)("%s", { timeout: 600_000 }, async (language) => {
    const tools = await toolsOf(language);
    if (typeof tools === "string")
      return expect(jail.supports(language)).rejects.toMatchObject({ code: "sandbox/no-language" });
    await jail.supports(language);

    const programs = some(honest[language], level === "jail" ? 4 : 2);
    const good = await Promise.all(
      programs.map(async ({ name, task, code }) => {
        const { verdict, status, failure } = await gradeIn(language, code, tasks[task]);
        return verdict === "pass" ? "pass" : `${name}: ${verdict}, ${status} ${failure?.stderr} ${failure?.printed}`;
      }),
    );
    expect(good).toEqual(programs.map(() => "pass"));

    const names = Object.keys(hostile[language]).slice(0, whole ? undefined : level === "jail" ? 7 : 3);
    const bad = await Promise.all(
      names.map(async (name) => {
        const code = aimedAt(hostile[language][name]!, secret);
        const wanted = { inputs: ["", "x\n"], outputs: [content, content] };
        const [result, sibling] = await Promise.all([
          gradeIn(language, code, wanted),
          grader.grade({
            problem: { tests: normalizeTests({ inputs: ["17 25\n"], outputs: ["42"] }).tests, languages: [language] },
            code: languageOf(language).sum,
            fresh: true,
          }),
        ]);
        const leaked = result.tests.some(({ detail }) => detail?.includes(`got "${content}`));
        return `${name}: ${result.verdict}${leaked ? ", leaked" : ""}; beside it ${sibling.verdict}`;
      }),
    );
    expect(bad).toEqual(names.map((name) => `${name}: fail; beside it pass`));
    return undefined;
  });

  test("joining a thread takes no processor time, and no wait is woken from outside", {
    timeout: 240_000,
  }, async () => {
    if (typeof (await toolsOf("cpp")) === "string") return;
    const source = `#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
volatile int alarms = 0;
int main() {
  int done = 0;
  for (int i = 0; i < 300; i++) std::thread([&] { done++; }).join();
  signal(SIGALRM, [](int) { alarms++; });
  itimerval every{{0, 50000}, {0, 50000}};
  setitimer(ITIMER_REAL, &every, nullptr);
  std::thread([] { for (int i = 0; i < 60; i++) usleep(20000); }).join();
  itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  // On a page of the C library, which every program has.
  int *page = (int *)((uintptr_t)&printf & ~3ul);
  timespec longest{20, 0};
  int waited = syscall(SYS_futex, page, FUTEX_WAIT, *page, &longest, nullptr, 0);
  std::cout << done << (alarms > 3 ? " alarms " : " none ") << waited << (errno == EAGAIN ? " EAGAIN " : " other ")
            << syscall(SYS_futex, page, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}`;
    const tests = [{ kind: "stdin", stdin: "" } as const];
    const [outcome] = await jail.run(
      { language: "cpp", source, tests, limits: { ...defaultLimits, wallMs: 20_000 }, preamble: true },
      () => "stop",
    );
    expect(`${Buffer.from(outcome!.stdout)}${outcome!.stderrTail}`).toBe("300 alarms -1 EAGAIN 0");
    expect(outcome!.cpuMs).toBeLessThan(600); // of more than 1,200 that its first thread waits
  });

  test("a compiled program cannot become what it wrote, at the second level", { timeout: 60_000 }, async () => {
    if (level === "jail" || typeof (await toolsOf("cpp")) === "string") return;
    const source = `#include <cerrno>\n#include <fstream>\n#include <iostream>\n#include <fcntl.h>\n#include <unistd.h>
int main(int argc, char**) {
  if (argc > 1) { std::cout << "again"; return 0; }
  close(open("copy", O_CREAT | O_WRONLY, 0777));
  std::ofstream("copy", std::ios::binary) << std::ifstream("program", std::ios::binary).rdbuf();
  execl("./copy", "copy", "x", nullptr);
  std::cout << errno;
}`;
    const tests = [{ kind: "stdin", stdin: "" } as const];
    const [outcome] = await jail.run(
      { language: "cpp", source, tests, limits: defaultLimits, preamble: true },
      () => "stop",
    );
    expect(Buffer.from(outcome!.stdout).toString()).toBe("13");
  });
});
