// Problems for environments on the bundled model.
import { buildMessages } from "../../src/data/question.ts";

/** What the bundled model answers in its own way: with a short program. */
export const exercises = Array.from({ length: 4 }, (_, index) => ({
  id: `keep-${index}`,
  least: 10 + index,
  prompt: buildMessages({
    question: `You are given a list a of integers. Keep only the numbers that are at least ${10 + index}. Return the resulting list.`,
  }),
}));
export type Exercise = (typeof exercises)[number];
