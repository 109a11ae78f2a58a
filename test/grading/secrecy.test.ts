// What is expected is nowhere a program can look: not in its own memory, not in files, not in its environment. The program knows the
// shape of the answer and searches everything it can reach; it must find its input, which shows that the search works, and nothing else.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createGrader, normalizeTests } from "../../src/grading/index.ts";
import { openFusion } from "../../src/sandbox/fusion/fusion.ts";
import { type FusionServer, startFusionServer } from "../../src/sandbox/fusion/server.ts";
import { type Jail, openJail } from "../../src/sandbox/jail.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";

let jail: Jail;
let server: FusionServer;
let fusion: Sandbox;

beforeAll(async () => {
  jail = await openJail();
  server = await startFusionServer({ jail, port: 0, concurrency: 2 });
  fusion = await openFusion({ url: server.url });
});
afterAll(async () => {
  await fusion?.close();
  await server?.close();
  await jail?.close();
});

const search = `
import gc, os, re, sys
shape = re.compile(b"Q9" + b"Z-[0-9a-f]{8}")
found = set()
def look(data):
    found.update(match.decode() for match in shape.findall(data))
given = sys.stdin.readline()
look(given.encode())
for thing in gc.get_objects():
    try: look(repr(thing).encode("utf-8", "replace"))
    except BaseException: pass
# Its memory, page by page around every object it has: the kernel answers with an error where nothing is mapped.
import ctypes
copy = ctypes.CDLL(None, use_errno=True).write
copy.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
regions = {id(thing) >> 20 for thing in gc.get_objects()}
regions |= {region + step for region in regions for step in (-1, 1)}
pages = 0
with open("dump", "w+b", 0) as dump:
    for region in sorted(regions):
        dump.seek(0)
        dump.truncate()
        for page in range(256):
            pages += copy(dump.fileno(), (region << 20) + (page << 12), 4096) == 4096
        dump.seek(0)
        look(dump.read())
looked = "memory" if pages > 500 else "little"
look(repr(os.environ).encode())
for folder, _, names in os.walk("/tmp"):
    for name in names:
        try: look(open(os.path.join(folder, name), "rb").read(1 << 20))
        except OSError: pass
print(looked, *sorted(found))
`;

test.each(["jail", "fusion"])("a program finds its own input and no expected output (%s)", async (backend) => {
  if (backend === "fusion" && jail.description.kind === "landlock")
    return console.warn("skipping the search over HTTP: the jail of this machine cannot start processes");
  const sandbox = backend === "jail" ? jail : fusion;
  const grader = createGrader({ sandbox, limits: { rewardTimeoutS: 20 }, cacheSize: 0 });
  // Two tests, the second in the same chunk as others: inputs of later tests must not be there either.
  const inputs = ["aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd"].map((text) => `Q9Z-${text}\n`);
  const outputs = inputs.map((_, index) => `Q9Z-${String(index).repeat(8)}`);
  const { tests } = normalizeTests({ inputs, outputs });
  const first = await grader.grade({ problem: { tests }, code: search });
  expect([first.verdict, first.tests[0]?.detail]).toEqual([
    "fail",
    expect.stringMatching(/^got "memory Q9Z-aaaaaaaa\\n", expected "Q9Z-00000000"$/),
  ]);
  // Let the first three pass, so that the last one shows what a program late in a chunk can find.
  const late = `${search}`.replace(
    "print(looked",
    `if "dddddddd" not in given: print("Q9Z-" + str("abc".index(given[4])) * 8)\nelse: print(looked`,
  );
  const last = await grader.grade({ problem: { tests }, code: late });
  expect([last.passed, last.tests[3]?.detail]).toEqual([
    3,
    expect.stringMatching(/^got "memory Q9Z-dddddddd\\n", expected "Q9Z-33333333"$/),
  ]);
});
