// What programs make of their standard streams: each ends with the status and the output that python3 itself gives it.
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Jail, type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { job, stdin, textOf } from "./plain.ts";

const own = (members: string, name = "stdout") => `
import os, sys
class Out:
    def __init__(self): self.b = []
    def write(self, s): self.b.append(s)
    def flush(self): os.write(1, ''.join(self.b).encode()); self.b.clear()
${members.replace(/^/gm, "    ")}
sys.${name} = Out()
print(sum(map(int, input().split())), file=sys.${name})
`;

const programs: Record<string, string> = {
  "write and flush": own("pass"),
  "closed is False": own("closed = False"),
  "closed is True": own("closed = True"),
  "closed raises": own("@property\ndef closed(self): raise KeyError"),
  "closed exits": own("@property\ndef closed(self): raise SystemExit(3)"),
  "closed has no truth": own("class T:\n    def __bool__(self): raise ValueError\nclosed = T()"),
  "no flush": own("flush = None"),
  "flush fails": own("def flush(self): raise OSError"),
  "flush exits": own("def flush(self): sys.exit(0)"),
  "flush fails after sys.exit(3)": `${own("def flush(self): raise OSError")}\nsys.exit(3)`,
  "written when it goes": own("def flush(self): pass\ndef __del__(self): os.write(1, ''.join(self.b).encode())"),
  "stderr, write and flush": own("pass", "stderr"),
  "stderr fails": own("def flush(self): raise OSError", "stderr"),
  "a StringIO": "import io, sys\nsys.stdout = io.StringIO()\nprint(1)\nsys.__stdout__.write(sys.stdout.getvalue())",
  "a BytesIO around the buffer":
    "import io, sys\nb = io.BytesIO()\nsys.stdout = io.TextIOWrapper(b)\nprint(1, flush=True)\nsys.__stdout__.buffer.write(b.getvalue())",
  "a new wrapper of the buffer": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'utf-8')\nprint(1)",
  "a wrapper of what was detached":
    "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach(), 'utf-8')\nprint(1)",
  "a write function":
    "import sys\nout = []\nclass O: write = out.append\nsys.stdout = O\nprint(1)\nsys.__stdout__.write(''.join(out))",
  None: "import sys\nprint(1, flush=True)\nsys.stdout = None\nprint(2)",
  deleted: "import sys\nprint(1)\ndel sys.stdout",
  closed: "import sys\nprint(1)\nsys.stdout.close()",
  "its descriptor closed": "import os, sys\nprint(1)\nos.close(1)",
  "stderr closed": "import sys\nprint(1)\nsys.stderr.close()",
  "replaced, and the first one's descriptor closed":
    "import io, os, sys\nprint(1)\nsys.stdout = io.StringIO()\nos.close(1)",
  "a file":
    "import os, sys\nsys.stdout = open('out', 'w')\nprint(1)\nsys.stdout.flush()\nos.write(1, open('out', 'rb').read())",
  "a file over the descriptor": "import sys\nsys.stdout = open(1, 'w')\nprint(1)",
  "both over the descriptor": "import sys\nprint(0, flush=True)\nsys.stdout = open(1, 'w', closefd=False)\nprint(1)",
  "exits in atexit": "import atexit, sys\natexit.register(lambda: sys.exit(4))\nprint(1)",
  "fails in atexit": "import atexit\natexit.register(lambda: 1 / 0)\nprint(1)",
};

describe.each<JailLevel>(["jail", "landlock"])("standard streams, level %s", (level) => {
  let jail: Jail;
  beforeAll(async () => {
    jail = await openJail({ levels: [level], slots: 2 });
  }, 60_000);
  afterAll(() => jail?.close());

  test.each(Object.entries(programs))("%s", async (_name, source) => {
    const real = spawnSync(jail.description.python, ["-c", source], {
      input: "1 2\n",
      cwd: "/tmp",
      env: {},
      encoding: "utf8",
    });
    const [outcome] = await jail.run(job(source, [stdin("1 2\n")]), () => "continue");
    expect({ status: outcome!.exitCode, printed: textOf(outcome) }, outcome!.stderrTail).toEqual({
      status: real.status,
      printed: real.stdout,
    });
  });
});
