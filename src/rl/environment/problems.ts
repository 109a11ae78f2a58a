// The problems of an environment: given as a list, or made when they are asked for.
import { ConfigError } from "../../core/errors.ts";
import { checkProblems, type TrainingProblem } from "../own-problems.ts";
import type { Environment, EnvironmentOptions } from "./environment.ts";
import { withPlace } from "./place.ts";

/** What to train on and to measure with; refuses what is no list of problems. */
export async function environmentProblems<Problem extends TrainingProblem>({
  problems,
  testProblems = [],
}: Environment<Problem>): Promise<{ problems: readonly Problem[]; testProblems: readonly Problem[] }> {
  const all = {
    problems: await listOf("problems", problems),
    testProblems: await listOf("testProblems", testProblems),
  };
  if (all.problems.length === 0)
    throw new ConfigError("config/no-problems", "The environment has no problems to train on. Give at least one.");
  return all;
}

async function listOf<Problem extends TrainingProblem>(
  name: "problems" | "testProblems",
  given: EnvironmentOptions<Problem>["problems"],
): Promise<readonly Problem[]> {
  if (typeof given !== "function") {
    checkProblems(given, name);
    return given;
  }
  const list = await Promise.resolve()
    .then(given)
    .catch((error: unknown) => {
      throw new ConfigError(
        "config/no-problems",
        `The environment's ${name}() failed: ${withPlace(error)}. Nothing was asked of a model yet; mend it, then run the same again.`,
        { cause: error },
      );
    });
  checkProblems(list, name);
  return list;
}
