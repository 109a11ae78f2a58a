// What programs could tell each other, tried at both levels. Closed channels carry nothing: the receiver sees the same whatever was sent, and where it
// does not (a cold or busy machine), more uses of that channel alone show that what it sees has nothing to do with what was sent.
// WHET_CHANNELS=1 also measures those that are known to be open, and prints a table of all.
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Jail, type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { type Channel, channels, isOpen } from "./channels.ts";
import { chance, classes, information, leakBelow, noiseAbove, randomBits, type Use } from "./information.ts";
import { job, stdin, textOf } from "./plain.ts";

const measuring = process.env["WHET_CHANNELS"] === "1";
const firstUses = 4;
const moreUses = 24;
const maxUses = 96;

/** The file that page-cache channels use leaves the cache, as it would by itself after a while. */
const evict =
  "import os, _pydecimal; fd = os.open(_pydecimal.__file__, os.O_RDONLY); os.fsync(fd); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED); os.utime(_pydecimal.__file__, ns=(0, os.fstat(fd).st_mtime_ns))";
/** And it is there to begin with: the first read of a cold machine is no message. */
const warm = "import _pydecimal; open(_pydecimal.__file__, 'rb').read()";

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

  /** Sends bits and looks, one use after the other. */
  async function tryOut(channel: Channel, uses: number): Promise<Use[]> {
    const seen: string[] = [];
    const bits = randomBits(uses);
    for (const bit of bits) {
      if (channel.open?.includes("cold")) spawnSync(jail.description.python, ["-c", evict]);
      const send = () => run(`bit = input() == "1"\n${channel.send}`, bit ? "1" : "0");
      const receive = () => run(channel.receive, channel.knowsBit ? String(bit) : "");
      const sent = send();
      if (!channel.live) await sent;
      const [found] = await Promise.all([receive(), sent]);
      seen.push(found);
    }
    return classes(seen).map((text, index) => [bits[index]!, text]);
  }

  /** Uses a channel until what is seen is either noise or a leak. */
  async function examine(channel: Channel): Promise<{ leaks: boolean; uses: Use[]; likely: number }> {
    const uses: Use[] = [];
    let likely = 1;
    while (uses.length < maxUses) {
      uses.push(...(await tryOut(channel, moreUses)));
      likely = chance(uses);
      if (likely < leakBelow || likely > noiseAbove) break;
    }
    return { leaks: likely < leakBelow, uses, likely };
  }

  // Measured one after the other; otherwise all at once, which is as hard on the closed ones and much shorter.
  test.runIf(measuring).each(channels)("$name", { timeout: 300_000 }, async (channel) => {
    const { leaks, uses, likely } = await examine(channel);
    const noise = leaks ? "" : ` (chance: ${likely.toFixed(2)})`;
    const open = isOpen(channel, level) ? "  (open)" : "";
    rows.push(`  ${information(uses).toFixed(2)}${noise}  ${channel.name}${open}  [${uses[0]![1]}]`);
    if (!open) expect(leaks).toBe(false);
  });

  test.skipIf(measuring)("closed channels carry nothing", { timeout: 300_000 }, async () => {
    const closed = channels.filter((one) => !isOpen(one, level));
    await run(warm, "");
    const tried = await Promise.all(closed.map(async (one) => [one, await tryOut(one, firstUses)] as const));
    const leaks: string[] = [];
    for (const [channel, first] of tried) {
      if (new Set(first.map(([, seen]) => seen)).size === 1) continue;
      const { leaks: does, uses, likely } = await examine(channel);
      if (does) leaks.push(`${channel.name}: ${information(uses).toFixed(2)} bits per use, by chance ${likely}`);
    }
    expect(leaks).toEqual([]);
  });

  test("a channel that is open is found, a noisy one too", { timeout: 120_000 }, async () => {
    const open = { name: "open", live: false, knowsBit: true, send: "" };
    const receive = ["print(input())", "import random\nprint(random.random() < 0.2 or input())"];
    for (const text of receive) expect(await examine({ ...open, receive: text })).toMatchObject({ leaks: true });
  });

  test("process ids tell neither the number of a test nor what the one before started", async () => {
    const source =
      "import os\nbit = input() == '1'\nprint(os.getpid(), os.path.exists('/proc/1'))\ntry:\n    for _ in range(40 if bit else 0):\n        p = os.fork()\n        if p == 0: os._exit(0)\n        os.waitpid(p, 0)\nexcept OSError: pass";
    if (level === "landlock") return; // the host's own ids: said in what the level lacks
    const outcomes = await jail.run(
      job(
        source,
        randomBits(12).map((bit) => stdin(bit ? "1" : "0")),
      ),
      () => "continue",
    );
    const seen = outcomes.map((outcome) => textOf(outcome).trim().split(" "));
    const ids = seen.map(([id]) => Number(id));
    expect(new Set(seen.map(([, there]) => there))).toEqual(new Set(["False"]));
    expect(ids.filter((id, index) => Math.abs(id - (ids[index - 1] ?? 0)) > 200).length).toBeGreaterThan(6);
  });
});
