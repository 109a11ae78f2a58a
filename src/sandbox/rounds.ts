// When verdicts may decide whether a program's tests go on. Were judging to stop at the first wrong answer, "another test was started" would
// tell the inside of the jail that the answer before was right: an oracle that a group of programs could use to find out answers they
// cannot compute. So tests go in rounds, and verdicts count only between rounds: within one, what is handed over does not depend on them. What a
// program knows anyway (that it crashed, ran out of time or printed too much) may end it at once.

const firstRound = 16;
const growth = 4;

/** Whether a round ends after this many tests: after 16, 64, 256 … of them. */
export function endsRound(tests: number): boolean {
  let end = firstRound;
  while (end < tests) end *= growth;
  return end === tests;
}

/** Tests from `done` to the end of its round. */
export function restOfRound(done: number): number {
  let end = firstRound;
  while (end <= done) end *= growth;
  return end - done;
}
