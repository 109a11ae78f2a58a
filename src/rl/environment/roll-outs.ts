// An environment as what rolls out groups: with the run's format and limits, and with its grader where it asks for one.
import { messageOf, WhetstoneError } from "../../core/errors.ts";
import type { Grader } from "../../grading/index.ts";
import { visibleTests } from "../../grading/visible.ts";
import { EndpointServer } from "../../openai/index.ts";
import type { Renderer } from "../../renderers/index.ts";
import type { Grade } from "../../runs/events.ts";
import type { TrainConfig } from "../config.ts";
import { type TrainingProblem, testsOf } from "../own-problems.ts";
import { TrainError } from "../resume.ts";
import { type Judge, playEpisodes, type RollOuts, type Seat } from "../rollout.ts";
import type { Task } from "../tasks.ts";
import type { Environment, Graded } from "./environment.ts";
import { playerOf } from "./play.ts";
import { Unavailable } from "./tools.ts";
import { NoVerdict, verdictOf } from "./verdict.ts";

/** What judges and runs programs. */
export interface CodeServices {
  judge: Judge;
  grader: Grader;
}

/** `code` is asked for when an episode first grades or runs something. */
export function rollOutsOf<Problem extends TrainingProblem>(
  environment: Environment<Problem>,
  renderer: Renderer,
  config: TrainConfig,
  code: () => Promise<CodeServices | undefined>,
): RollOuts {
  const services = async (): Promise<CodeServices> => {
    const there = await code().catch((error: unknown) => {
      // Nothing of this is the episode's fault, and no other episode would fare better.
      if (error instanceof WhetstoneError) throw new TrainError("rl/no-grader", messageOf(error), { cause: error });
      throw error;
    });
    if (there) return there;
    throw new TrainError(
      "rl/no-grader",
      "The environment grades or runs programs, and there is no grader. Give runTraining a grader, or train with the command.",
    );
  };
  return playEpisodes(
    { renderer, limits: config },
    playerOf(environment, config, {
      endpoints: new EndpointServer(),
      code: (seat) => ({
        grade: async (answer, problem) => {
          const { judge } = await services();
          return gradedOf(await judge(taskOf(problem, seat), answerOf(answer), seat.signal, seat.place));
        },
        tryExamples: async (answer) => {
          const { judge } = await services();
          const { task } = seat;
          const examples = visibleTests(task.question ?? "", await task.loadTests());
          if (examples.length === 0) return undefined;
          const shown = { ...task, id: `${task.id} (examples)`, loadTests: async () => examples };
          const judged = await judge(shown, answerOf(answer), seat.signal, seat.place);
          return { ...gradedOf(judged), failure: judged.failure };
        },
        python: async (source, { stdin } = {}) => {
          const { grader } = await services();
          // Where the sandbox is away, that says nothing of the program.
          return grader.run(source, { stdin, signal: seat.signal }).catch((error: unknown) => {
            const isAway = error instanceof WhetstoneError && error.code.startsWith("sandbox/");
            throw isAway ? new Unavailable(messageOf(error)) : error;
          });
        },
      }),
    }),
  );
}

/** A problem's own tests, or those of another one. */
const taskOf = (problem: TrainingProblem | undefined, { task }: Seat): Task =>
  problem === undefined || problem === task.problem
    ? task
    : { ...task, id: problem.id, problem, loadTests: async () => testsOf(problem) };

function gradedOf(grade: Grade): Graded {
  const { status, passed, total } = grade;
  if (grade.reward === null) throw new NoVerdict(grade);
  return Object.assign(verdictOf(grade), { status, passed, total }) as Graded;
}

const answerOf = (answer: string | { code: string }) => ({
  text: typeof answer === "string" ? answer : `\`\`\`python\n${answer.code}\n\`\`\``,
  tokens: new Int32Array(),
  logprobs: new Float32Array(),
  truncated: false,
});
