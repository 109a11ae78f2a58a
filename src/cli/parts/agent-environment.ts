// The environment in which somebody's agent plays: each episode runs the command with the problem on its input. What it prints is judged
// as an answer would be: by the problem's tests, or by the reward of the environment that env= names.
import { jailProgram } from "../../agents/jail.ts";
import { runAgent } from "../../agents/run-agent.ts";
import { ConfigError } from "../../core/errors.ts";
import { isInside } from "../../core/files.ts";
import { Limiter } from "../../core/limiter.ts";
import { visible } from "../../core/visible.ts";
import type { TrainConfig } from "../../rl/config.ts";
import { type Environment, type Episode, environment, type Ran } from "../../rl/environment/environment.ts";
import { messagesOf, type TrainingProblem } from "../../rl/own-problems.ts";

/** `own`: an environment with problems and a reward. Without one the problems come from a data set, and tests judge. */
export function agentEnvironment(config: TrainConfig, own?: Environment): Environment {
  const { agent, env, agent_sandbox: sandbox } = config;
  if (own?.run || (env !== "" && !own))
    throw new ConfigError(
      "config/conflict",
      `agent=${JSON.stringify(agent)} plays the episodes, and so does env=${env}. Leave one of them out; an environment with problems and a reward, and without a run, goes with an agent.`,
    );
  const cwd = process.cwd();
  // Fails before anything is asked of a model where there is no jail.
  if (sandbox) jailProgram(cwd);
  const play = async ({ problem, endpoint, signal, log, grade }: Episode) => {
    const prompt = messagesOf(problem)
      .map(({ content }) => content)
      .join("\n\n");
    const files = {
      ...filesOf(problem),
      "problem.txt": prompt,
      "problem.json": JSON.stringify({ id: problem.id, prompt }),
    };
    const result = await runAgent({ command: agent, cwd, sandbox, endpoint, input: prompt, files, signal });
    const { code, stdout, stderr, isCut } = result;
    log("stdout", stdout);
    if (stderr !== "") log("stderr", stderr);
    if (code !== 0 || isCut) throw new Error(`the agent ${howItEnded(result)}${said(stderr)}`);
    if (own) return stdout;
    // A program alone is an answer too.
    return grade(stdout.includes("```") ? stdout : { code: stdout });
  };
  return environment({
    ...own,
    problems: own?.problems ?? [], // the run's data
    run: againstEndpoint(config, play),
  });
}

export type AgentSettings = Pick<TrainConfig, "max_agents" | "completions_per_prompt" | "eval_num_samples">;

/** Plays episodes whose agent asks the endpoint, max_agents at once. */
export function againstEndpoint<Problem extends TrainingProblem>(
  { max_agents: agents, completions_per_prompt: samples, eval_num_samples: measured }: AgentSettings,
  play: (episode: Episode<Problem>) => Promise<Ran>,
): (episode: Episode<Problem>) => Promise<Ran> {
  // A group begins when all of its episodes have asked: with fewer places than episodes they would wait for each other forever.
  const limiter = new Limiter(Math.max(agents, samples, measured));
  return (episode) => {
    const start = () => {
      // The endpoint overwrites it with how many it gave.
      episode.log("endpoint/answers", 0);
      return play(episode);
    };
    return limiter.run(start, { signal: episode.signal });
  };
}

function howItEnded({ code, signal, isCut }: Awaited<ReturnType<typeof runAgent>>): string {
  if (isCut) return "printed more than is kept";
  return code === null ? `was killed (${signal})` : `ended with exit code ${code}`;
}

const said = (stderr: string): string => (stderr.trim() === "" ? "" : `: ${visible(stderr.trim()).slice(-500)}`);

/** Files that a problem brings. */
function filesOf({ id, ...problem }: TrainingProblem): Record<string, string> {
  const { files = {} } = problem as { files?: Readonly<Record<string, unknown>> };
  const entries = Object.entries(files);
  const odd = entries.find(([name, text]) => !isInside(name) || typeof text !== "string");
  if (!odd) return Object.fromEntries(entries) as Record<string, string>;
  throw new ConfigError(
    "config/bad-files",
    `Problem ${JSON.stringify(id)} has the file ${JSON.stringify(odd[0])}, which is no text below the problem's folder. Give names such as "src/a.py", each with its text.`,
  );
}
