// A virtual environment as the sandbox's interpreter: bound read-only, numpy preloaded for the programs that mention it.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { temporaryFolders } from "../support/folders.ts";
import { suiteVenv, type Venv } from "../support/venv.ts";
import { call, job, stdin, textOf } from "./plain.ts";

describe("numpy in the sandbox's interpreter", () => {
  let venv: Venv;
  beforeAll(async () => {
    venv = await suiteVenv();
  }, 300_000);

  test.each<JailLevel>(["jail", "landlock"])(
    "level %s",
    async (level) => {
      if ("missing" in venv) {
        console.warn(`skipped: ${venv.missing}`);
        return;
      }
      const jail = await openJail({ python: venv.python, levels: [level], slots: 1 });
      try {
        expect(jail.description.python).toBe(venv.python);
        const uses =
          "import sys\nbefore = 'numpy' in sys.modules\nimport numpy as np\nprint(before, int(np.array(input().split(), dtype=int).sum()))";
        const outcomes = await jail.run(job(uses, [stdin("1 2"), stdin("3 4")]), () => "continue");
        expect(outcomes.map(textOf), outcomes[0]?.stderrTail).toEqual(["True 3\n", "True 7\n"]);
        const value = "import numpy as np\ndef f(n): return [np.int64(n), np.arange(3) / 2, np.bool_(True)]";
        const [called] = await jail.run(job(value, [call("7")]), () => "continue");
        expect(called!.frame).toBe('["l",[["i","7"],["l",[["f","0.0"],["f","0.5"],["f","1.0"]]],["b",true]]]');
        const plain = "import sys\nprint('numpy' in sys.modules.keys() - {'x'})".replace("numpy", "num' + 'py");
        const [without] = await jail.run(job(plain, [stdin("")]), () => "continue");
        expect(textOf(without)).toBe("False\n");
        const writes =
          "import numpy, os\ntry:\n    open(os.path.dirname(numpy.__file__) + '/x', 'w')\n    print('ESCAPED')\nexcept OSError:\n    print('refused')";
        const [written] = await jail.run(job(writes, [stdin("")]), () => "continue");
        expect(textOf(written)).toBe("refused\n");
      } finally {
        await jail.close();
      }
    },
    120_000,
  );
});

const newFolder = temporaryFolders();

test("a virtual environment under /tmp, which the jail covers, is shown elsewhere", async () => {
  const folder = join(newFolder(), "venv");
  execFileSync("python3", ["-m", "venv", "--without-pip", folder]);
  const jail = await openJail({ python: folder, levels: ["jail"], slots: 1 });
  try {
    const [outcome] = await jail.run(
      job("import sys, json\nprint(sys.prefix != sys.base_prefix)", [stdin("")]),
      () => "continue",
    );
    expect(textOf(outcome), outcome?.stderrTail).toBe("True\n");
  } finally {
    await jail.close();
  }
});
