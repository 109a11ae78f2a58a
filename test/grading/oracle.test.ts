// What a second program can learn of a first one's verdicts, through a channel that is known to be open (waiting on a page of a shared library): which
// tests were started. Were judging to stop at the first wrong answer, that would tell how many answers are right; with rounds it tells nothing.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createGrader, normalizeTests } from "../../src/grading/index.ts";
import { type Jail, openJail } from "../../src/sandbox/jail.ts";
import { job, stdin, textOf } from "../sandbox/plain.ts";

let jail: Jail;
beforeAll(async () => {
  jail = await openJail({ slots: 2 });
}, 60_000);
afterAll(() => jail?.close());

const futex = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
number = ctypes.c_long(202 if os.uname().machine == "x86_64" else 98)
base = ctypes.cast(libc.printf, ctypes.c_void_p).value & ~4095
`;
/** Notes which tests of another program start while it runs. */
const observer = `${futex}
import threading, time
class Time(ctypes.Structure): _fields_ = [("s", ctypes.c_long), ("n", ctypes.c_long)]
seen = set()
def watch(k):
    at = base + 4 * k
    if libc.syscall(number, ctypes.c_void_p(at), 0, ctypes.c_uint.from_address(at), ctypes.byref(Time(4, 0)), None, 0) == 0: seen.add(k)
threads = [threading.Thread(target=watch, args=(k,)) for k in range(6)]
for t in threads: t.start()
for t in threads: t.join()
print(*sorted(seen))
`;
/** Announces the test it runs, then guesses. */
const guesser = (guesses: readonly string[]) => `${futex}
k = int(input())
libc.syscall(number, ctypes.c_void_p(base + 4 * k), 1, 99, None, None, 0)
print(${JSON.stringify(guesses)}[k])
`;

const answers = ["YES", "NO", "NO", "YES", "NO", "YES"];
const problem = {
  tests: normalizeTests({ inputs: answers.map((_, index) => `${index}\n`), outputs: answers }).tests,
};
/** Wrong first at 0, 2, 5, and nowhere. */
const groups = [0, 2, 5, 6].map((wrong) => answers.map((answer, index) => (index < wrong ? answer : "?")));

async function observed(run: (source: string) => Promise<unknown>, guesses: readonly string[]): Promise<string> {
  const watching = jail.run(job(observer, [stdin("")], { wallMs: 20_000 }), () => "continue");
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  await run(guesser(guesses));
  return textOf((await watching)[0]).trim();
}

// Retried: what a busy machine starts late is seen late.
const patient = { timeout: 120_000, retry: 2 };

test("what is started tells nothing of the answers", patient, async () => {
  const grader = createGrader({ sandbox: jail, cacheSize: 0 });
  for (const guesses of groups) {
    const seen = await observed((code) => grader.grade({ problem, code }), guesses);
    expect(seen, guesses.join()).toBe("0 1 2 3 4 5");
  }
});

test(
  "the same channel would tell all of it to a group whose tests stop at the first wrong answer",
  patient,
  async () => {
    const stopping = (source: string) =>
      jail.run(
        job(
          source,
          answers.map((_, index) => stdin(`${index}\n`)),
        ),
        (outcome, index) => (textOf(outcome).trim() === answers[index] ? "continue" : "stop"),
      );
    const seen: string[] = [];
    for (const guesses of groups) seen.push(await observed(stopping, guesses));
    // The channel is real: were it closed one day, both tests would see nothing, and this one would say so.
    expect(seen).toEqual(["0", "0 1 2", "0 1 2 3 4 5", "0 1 2 3 4 5"]);
  },
);
