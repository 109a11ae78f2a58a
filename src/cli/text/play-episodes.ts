// `./whet sample` with an environment: episodes of one problem, each printed turn by turn as the model sees it, with its verdict.
import { countOf } from "../../core/count.ts";
import { ConfigError } from "../../core/errors.ts";
import { nearest } from "../../core/nearest.ts";
import { Random } from "../../core/random.ts";
import { visible } from "../../core/visible.ts";
import { codeEnvironment } from "../../rl/environment/code.ts";
import { policyOf } from "../../rl/policies.ts";
import { type Task, taskOf } from "../../rl/tasks.ts";
import type { Arrays, Grade, NewEvent } from "../../runs/events.ts";
import type { Work } from "../parts/work.ts";
import { findProblem } from "../problems/find-problem.ts";
import type { Asked } from "../weights/asked-weights.ts";

interface PlayOptions {
  n: number;
  temperature?: number | undefined;
  tests: string;
  json: boolean;
}

/** Plays `n` episodes of the problem that a word names; "" takes the first there is. Resolves to whether all had a verdict. */
export async function playEpisodesOf(
  asked: Asked,
  word: string,
  options: PlayOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const { bench, renderer, sampler, engine, label } = asked;
  const work = await bench.work(renderer, { splits: ["test"] });
  const task = await taskFor(asked, work, word, options);
  const { config } = bench;
  const rollOuts = work.rollOuts(renderer, config, bench.code({ patienceMs: 60_000 }));
  const printer = new Printer(asked, task, options);
  const rollOut = rollOuts({
    record: async (event, arrays) => printer.take(event, arrays),
    samples: options.n,
    temperature: options.temperature ?? (options.n === 1 ? 0 : 1),
    seedFor: () => (engine.kind === "hosted" ? undefined : new Random("sample", config.seed, task.id).uint32()),
  });
  const policy = policyOf(sampler);
  const { completions } = await rollOut({ phase: "eval", batch: 0, group: 0 }, task, policy, signal);
  const graded = completions.filter(({ grade }) => grade.verdict !== "ungraded");
  const passed = graded.filter(({ grade }) => grade.verdict === "pass").length;
  if (!options.json && options.n > 1) console.log(`${label}: ${passed} of ${graded.length} passed`);
  return graded.length === completions.length;
}

async function taskFor({ bench, renderer }: Asked, work: Work, word: string, { tests }: PlayOptions): Promise<Task> {
  const { config } = bench;
  const [first] = work.test;
  if (word === "") return first!;
  if (config.env === "" || codeEnvironment(config.env)) {
    const { problem, tests: given } = await findProblem(word, { tests, grade: true }, bench, renderer);
    const task = taskOf(problem, 0, config, renderer, config.eval_max_tokens || config.max_tokens);
    return { ...task, loadTests: given! };
  }
  const tasks = [...work.test, ...(await work.train.batch(0, work.train.size))];
  const found = tasks.find(({ id }) => id === word);
  if (found) return found;
  const ids = tasks.map(({ id }) => id);
  throw new ConfigError(
    "config/no-problem",
    `"${word}" is the id of none of the ${countOf(new Set(ids).size, "problem")} of env=${config.env}. Name one, such as ${nearest(word, ids) ?? first!.id}, or none for the first.`,
  );
}

interface PlayedTurn {
  sample: number;
  turn: number;
  parent: number | null;
  context: Int32Array;
  tokens: Int32Array;
  logprobs: Float32Array;
  text: string;
  rewritten?: string | undefined;
}

/** One episode is printed as it goes on, of several each when it is over. */
class Printer {
  readonly #asked: Asked;
  readonly #task: Task;
  readonly #options: PlayOptions;
  readonly #turns: PlayedTurn[] = [];
  readonly #started = performance.now();

  constructor(asked: Asked, task: Task, options: PlayOptions) {
    this.#asked = asked;
    this.#task = task;
    this.#options = options;
    if (!options.json) console.log(`── problem ${visible(task.id)}, asked of ${asked.label}`);
  }

  take(event: NewEvent, arrays: Arrays = {}): void {
    if (event.type === "graded") this.#graded(event.sample, event.grade);
    const { tokens, logprobs, prompt, context } = arrays as { [Name in string]: never } & {
      tokens: Int32Array;
      logprobs: Float32Array;
      prompt: Int32Array;
      context: Int32Array;
    };
    if (event.type === "turn-sampled") this.#add({ ...event, context, tokens, logprobs });
    if (event.type !== "group-sampled") return;
    let end = 0;
    for (const [sample, { tokens: count, text }] of event.samples.entries()) {
      const [from, to] = [end, end + count];
      end = to;
      const own = { tokens: tokens.slice(from, to), logprobs: logprobs.slice(from, to), context: prompt, text };
      if (count > 0) this.#add({ sample, turn: 0, parent: null, ...own });
    }
  }

  #add(turn: PlayedTurn): void {
    this.#turns.push(turn);
    if (!this.#options.json && this.#options.n === 1) this.#print(turn);
  }

  #print({ turn, context, tokens, rewritten }: PlayedTurn): void {
    const { tokenizer } = this.#asked.renderer;
    const seconds = ((performance.now() - this.#started) / 1000).toFixed(1);
    const anew = rewritten === undefined ? "" : `; a new sequence: ${rewritten}`;
    console.log(
      [
        `── turn ${turn + 1}: shown ${countOf(context.length, "token")}${anew}`,
        visible(tokenizer.decode(context)).trimEnd(),
        `── answered in ${countOf(tokens.length, "token")} (${seconds} s)`,
        visible(tokenizer.decode(tokens)).trimEnd(),
      ].join("\n"),
    );
  }

  #graded(sample: number, grade: Grade): void {
    const turns = this.#turns.filter((turn) => turn.sample === sample);
    const { n, json } = this.#options;
    if (json) {
      console.log(JSON.stringify(this.#asJson(sample, turns, grade)));
      return;
    }
    if (n > 1) {
      console.log(`── episode ${sample + 1} of ${n}`);
      for (const turn of turns) this.#print(turn);
    }
    console.log(describeEpisode(grade).join("\n"));
  }

  #asJson(sample: number, turns: readonly PlayedTurn[], grade: Grade) {
    const { verdict, status, reward, message, failure, episode } = grade;
    const said = turns.map(({ turn, parent, context, tokens, logprobs, text }) => ({
      turn,
      parent,
      text,
      context: [...context],
      tokens: [...tokens],
      logprobs: [...logprobs],
    }));
    const { id: problem } = this.#task;
    return {
      from: this.#asked.label,
      sample,
      problem,
      turns: said,
      verdict,
      status,
      reward,
      message,
      failure,
      episode,
    };
  }
}

/** How an episode ended, in a few lines. */
function describeEpisode({ verdict, status, reward, message, episode }: Grade): string[] {
  const word = status === verdict ? verdict : `${verdict} (${status})`;
  const lines = [`── verdict   ${word}${reward === null ? "" : `, reward ${Number(reward.toPrecision(6))}`}`];
  if (message !== undefined) lines.push(`   because   ${visible(message)}`);
  if (!episode) return lines;
  const { stop, turns, toolCalls, toolErrors, malformed, rewards, metrics, log } = episode;
  const tools = toolCalls > 0 ? `; ${countOf(toolCalls, "call")} of tools, ${toolErrors} of them failed` : "";
  const unread = malformed > 0 ? `; ${countOf(malformed, "answer")} with a call that could not be read` : "";
  lines.push(`   ended     ${stop} after ${countOf(turns.length, "turn")}${tools}${unread}`);
  if (rewards.length > 0) lines.push(`   rewards   ${rewards.join(", ")} (turn by turn, in the reward)`);
  for (const [name, value] of Object.entries({ ...metrics, ...log }))
    lines.push(`   ${name.padEnd(9)} ${visible(String(value))}`);
  return lines;
}
