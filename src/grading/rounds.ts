// When verdicts may decide whether a program's tests go on. Were judging to stop at the first wrong answer, "another test was started" would
// tell the inside of the jail that the answer before was right: an oracle that a group of programs could use to find out answers they
// cannot compute. So tests go in rounds, which end after 16, 64, 256 … of them, and verdicts exist only between rounds. What a program
// knows anyway (that it crashed, ran out of time or printed too much) may end it at once.

const firstRound = 16;
const growth = 4;

/** Tests from `done` to the end of its round. */
export function restOfRound(done: number): number {
  let end = firstRound;
  while (end <= done) end *= growth;
  return end - done;
}
