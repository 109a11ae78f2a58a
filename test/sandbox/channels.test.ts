// What programs could tell each other, tried at both levels. Closed channels carry nothing: the receiver sees the same whatever was sent.
// WHET_CHANNELS=1 also measures those that are known to be open, and prints a table of all.
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Jail, type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { type Channel, channels, isOpen } from "./channels.ts";
import { job, stdin, textOf } from "./plain.ts";

const measuring = process.env["WHET_CHANNELS"] === "1";
const uses = measuring ? 24 : 4;
/** Both values in an order that neither counting nor alternation gives. */
const bits = Array.from({ length: uses }, (_, index) => [1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1][index % 12] === 1);

/** Bits per use, from how often each thing was seen with each bit: the mutual information of what was sent and what was seen. */
function information(pairs: readonly [sent: boolean, seen: string][]): number {
  const share = (holds: (pair: [boolean, string]) => boolean) =>
    pairs.filter((p) => holds([p[0], p[1]])).length / pairs.length;
  let total = 0;
  for (const sent of [true, false])
    for (const seen of new Set(pairs.map(([, text]) => text))) {
      const both = share((pair) => pair[0] === sent && pair[1] === seen);
      if (both > 0)
        total += both * Math.log2(both / (share((pair) => pair[0] === sent) * share((pair) => pair[1] === seen)));
    }
  return total;
}

/** Numbers say more than words: seen as above or below the middle of what was seen. */
function classes(seen: readonly string[]): string[] {
  const numbers = seen.map((text) => Number(/^(?:number|share) ([\d.]+)$/.exec(text)?.[1] ?? Number.NaN));
  if (numbers.some(Number.isNaN)) return [...seen];
  // A counter only grows: what matters is the step from the last look.
  const steps = seen[0]!.startsWith("number") ? numbers.map((n, i) => n - (numbers[i - 1] ?? n)) : numbers;
  const middle = (Math.max(...steps.slice(1)) + Math.min(...steps.slice(1))) / 2;
  return steps.map((step) => (step > middle ? "high" : "low"));
}

/** The file that page-cache channels use leaves the cache, as it would by itself after a while. */
const evict =
  "import os, _pydecimal; fd = os.open(_pydecimal.__file__, os.O_RDONLY); os.fsync(fd); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED); os.utime(_pydecimal.__file__, ns=(0, os.fstat(fd).st_mtime_ns))";

describe.each<JailLevel>(["jail", "landlock"])("channels between programs, level %s", (level) => {
  let jail: Jail;
  const rows: string[] = [];
  beforeAll(async () => {
    jail = await openJail({ levels: [level], slots: measuring ? 2 : 10 });
  }, 60_000);
  afterAll(async () => {
    await jail?.close();
    if (measuring) console.log(`${level}: bits per use\n${rows.join("\n")}`);
  });

  const run = async (source: string, input: string) => {
    const [outcome] = await jail.run(job(source, [stdin(input)], { wallMs: 10_000 }), () => "continue");
    return outcome!.status === "finished" ? textOf(outcome).trim() : outcome!.stderrTail.trim().split("\n").at(-1)!;
  };

  async function measure(channel: Channel): Promise<number> {
    const seen: string[] = [];
    for (const bit of bits) {
      if (channel.open?.includes("cold")) spawnSync(jail.description.python, ["-c", evict]);
      const send = () => run(`bit = input() == "1"\n${channel.send}`, bit ? "1" : "0");
      const [, found] = channel.live
        ? await Promise.all([send(), run(channel.receive, "")])
        : [await send(), await run(channel.receive, "")];
      seen.push(found);
    }
    const carried = information(classes(seen).map((text, index) => [bits[index]!, text]));
    rows.push(`  ${carried.toFixed(2)}  ${channel.name}${isOpen(channel, level) ? "  (open)" : ""}  [${seen[0]}]`);
    return carried;
  }

  // Measured one after the other; otherwise all at once, which is as hard on the closed ones and much shorter.
  test.runIf(measuring).each(channels)("$name", { timeout: 300_000 }, async (channel) => {
    const carried = await measure(channel);
    if (!isOpen(channel, level)) expect(carried).toBe(0);
  });

  test.skipIf(measuring)("closed channels carry nothing", { timeout: 120_000 }, async () => {
    const closed = channels.filter((one) => !isOpen(one, level));
    const carried = await Promise.all(closed.map(async (one) => [one.name, await measure(one)] as const));
    expect(carried).toEqual(closed.map(({ name }) => [name, 0]));
  });

  test("process ids tell neither the number of a test nor what the one before started", async () => {
    const source =
      "import os\nbit = input() == '1'\nprint(os.getpid(), os.path.exists('/proc/1'))\ntry:\n    for _ in range(40 if bit else 0):\n        p = os.fork()\n        if p == 0: os._exit(0)\n        os.waitpid(p, 0)\nexcept OSError: pass";
    if (level === "landlock") return; // the host's own ids: said in what the level lacks
    const outcomes = await jail.run(
      job(
        source,
        bits.map((bit) => stdin(bit ? "1" : "0")),
      ),
      () => "continue",
    );
    const seen = outcomes.map((outcome) => textOf(outcome).trim().split(" "));
    const ids = seen.map(([id]) => Number(id));
    expect(new Set(seen.map(([, there]) => there))).toEqual(new Set(["False"]));
    expect(ids.filter((id, index) => Math.abs(id - (ids[index - 1] ?? 0)) > 200).length).toBeGreaterThan(uses / 2);
  });
});
