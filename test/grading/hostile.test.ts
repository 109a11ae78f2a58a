// Hostile programs are failures, never "ungraded", and whoever is graded beside them gets the verdict it gets alone. A sample of the hack
// corpus, the smaller one over HTTP, which starts a process for each test; WHET_HOSTILE=500 grades that many variants everywhere.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGrader, type Grader, normalizeTests } from "../../src/grading/index.ts";
import { openFusion } from "../../src/sandbox/fusion/fusion.ts";
import { startFusionServer } from "../../src/sandbox/fusion/server.ts";
import { type Jail, openJail } from "../../src/sandbox/jail.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { type Hack, hacks } from "../sandbox/hacks.ts";

const outside = { secretFile: "/etc/hostname", port: 1, pid: process.pid, controlSocket: "/tmp/control" };

/** What the corpus does, alone, again in threads, in children and after a good start. */
const wrappers: readonly ((source: string) => string)[] = [
  (source) => source,
  (source) => `print(5, flush=True)\n${source}`,
  (source) =>
    `import sys\nsys.setswitchinterval(1e-6)\nSOURCE = ${JSON.stringify(source)}\nimport threading\nfor _ in range(3):\n    threading.Thread(target=lambda: exec(SOURCE, {'__name__': '__main__'}), daemon=True).start()\nexec(SOURCE)`,
  (source) =>
    `import os\nSOURCE = ${JSON.stringify(source)}\ntry:\n    for _ in range(3):\n        if os.fork() == 0: os.setsid()\nexcept OSError: pass\nexec(SOURCE)`,
  (source) =>
    `import os\nSOURCE = ${JSON.stringify(source)}\ntry: r = [os.open('/proc/self/fd/%d' % d, os.O_RDONLY | os.O_NONBLOCK) for d in (1, 2, 3)]\nexcept OSError: r = []\nimport threading\ndef steal():\n    while True:\n        for d in r:\n            try: os.read(d, 65536)\n            except OSError: pass\nthreading.Thread(target=steal, daemon=True).start()\nexec(SOURCE)`,
];

const sum = { stdin: normalizeTests({ inputs: ["2 3\n", "10 -4\n"], outputs: ["5\n", "6\n"] }).tests };
const call = normalizeTests({
  fn_name: "f",
  inputs: [
    [2, 3],
    [10, -4],
  ],
  outputs: [[5], [6]],
}).tests;

function variants(wanted: number): { name: string; code: string; kind: Hack["kind"] }[] {
  const corpus = hacks(outside);
  const all = wrappers.flatMap((wrap, round) =>
    corpus
      // A function that a wrapper defines inside exec() is not the program's any more: only scripts are wrapped.
      .filter(({ kind }) => round === 0 || kind === "stdin")
      .map((hack) => ({ name: `${hack.name} #${round}`, code: wrap(hack.source), kind: hack.kind })),
  );
  const many = Array.from({ length: Math.ceil(wanted / all.length) }, (_, copy) =>
    all.map(({ name, code, kind }) => ({ name: `${name}.${copy}`, code: `${code}\n# ${copy}`, kind })),
  ).flat();
  // Spread over the whole corpus, whatever the number.
  return Array.from({ length: wanted }, (_, index) => many[Math.floor((index * many.length) / wanted)]!);
}

const siblings = [
  "print(sum(map(int, input().split())))",
  "import sys\nprint(sum(map(int, sys.stdin.read().split())))\nx = [i * i for i in range(100000)]",
  "print(5)",
  "raise ValueError(input())",
  "import time\ntime.sleep(0.2)\na, b = map(int, input().split())\nprint(a + b)",
];

describe.each(["jail", "landlock", "over HTTP"] as const)("hostile programs, %s", (where) => {
  const wanted = Number(process.env["WHET_HOSTILE"] ?? (where === "over HTTP" ? 6 : 16));
  let jail: Jail;
  let grader: Grader;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    jail = await openJail({ levels: [where === "over HTTP" ? "jail" : where], slots: 4 });
    closing.push(() => jail.close());
    let sandbox: Sandbox = jail;
    if (where === "over HTTP") {
      const server = await startFusionServer({ jail, port: 0, concurrency: 4 });
      closing.unshift(() => server.close());
      sandbox = await openFusion({ url: server.url, maxConcurrency: 4 });
      closing.unshift(() => sandbox.close());
    }
    const limits = { memoryBytes: 700 * 1024 ** 2, processes: 32, outputBytes: 1024 ** 2 };
    grader = createGrader({ sandbox, limits: { ...limits, rewardTimeoutS: 1 }, cacheSize: 0, concurrency: 8 });
  }, 60_000);
  afterAll(async () => {
    for (const close of closing) await close();
  });

  test(`0 of ${wanted} are ungraded or rewarded, and no sibling gets another verdict`, {
    timeout: 3_000_000,
  }, async () => {
    const grade = async (code: string, kind: Hack["kind"] = "stdin") => {
      const { verdict, status } = await grader.grade({ problem: { tests: kind === "stdin" ? sum.stdin : call }, code });
      return { verdict, status };
    };
    const alone: string[] = [];
    for (const code of siblings) alone.push(JSON.stringify(await grade(code)));
    const surprises: string[] = [];
    const counts: Record<string, number> = {};
    const queue = variants(wanted);
    const lane = async (offset: number) => {
      for (let number = offset; ; number++) {
        const hack = queue.shift();
        if (!hack) return;
        const which = number % siblings.length;
        const [hostile, sibling] = await Promise.all([grade(hack.code, hack.kind), grade(siblings[which]!)]);
        counts[hostile.status] = (counts[hostile.status] ?? 0) + 1;
        if (hostile.verdict !== "fail") surprises.push(`${hack.name}: ${JSON.stringify(hostile)}`);
        if (JSON.stringify(sibling) !== alone[which])
          surprises.push(`beside ${hack.name}: ${JSON.stringify(sibling)}, alone ${alone[which]}`);
      }
    };
    await Promise.all([lane(0), lane(2)]);
    if (process.env["WHET_HOSTILE"]) console.log(where, wanted, "hostile programs:", JSON.stringify(counts));
    expect(surprises).toEqual([]);
  });
});
