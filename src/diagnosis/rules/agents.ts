// Rules about agents that talk to the endpoint: what they do with a conversation, and with answers.
import { overMeans, percent, type Rule, short } from "../rule.ts";

/** A rule over what the endpoint noted of each episode, as means of three steps; `says` gets 0 for what was not noted. */
function agentRule({
  figures: [first, ...others],
  says,
  ...rule
}: Pick<Rule, "id" | "levels" | "when" | "means" | "remedy"> & {
  figures: readonly [string, ...string[]];
  says(...values: number[]): string | undefined;
}): Rule {
  return overMeans({
    ...rule,
    over: 3,
    figures: [`env/endpoint/${first}`, ...others.map((name) => `env/endpoint/${name}`)],
    sees(means, evidence) {
      const message = says(...means.map((value) => value || 0));
      const command = evidence.command("show", `step=${evidence.step}`, "group=0", "sample=0");
      return message === undefined ? undefined : { level: rule.levels[0]!, message, command };
    },
  });
}

export const agentRules: readonly Rule[] = [
  agentRule({
    id: "agent-silent",
    levels: ["error"],
    when: "in three steps no agent asked the model for anything",
    means: "the agent does not find the endpoint, or does its work without it: nothing can be learned from it",
    remedy:
      "let the agent use OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL (or episode.endpoint) for its model, and look at what it printed",
    figures: ["answers"],
    says: (answers) => (answers === 0 ? "the agents asked the model for nothing" : undefined),
  }),
  agentRule({
    id: "agent-system-changes",
    levels: ["warning"],
    when: "over three steps the system prompt changed once in an episode on average, or more often",
    means:
      "something in the agent's system prompt is new with every request, such as the time, so each answer begins a sequence",
    remedy: "take it out of the system prompt, or say it in the last user message",
    figures: ["system_changed", "answers"],
    says: (changed, answers) =>
      changed >= 1
        ? `the agents' system prompt changes ${short(changed)} times in an episode of ${short(answers)} answers`
        : undefined,
  }),
  agentRule({
    id: "agent-rewrites",
    levels: ["warning"],
    when: "over three steps a quarter of the answers, and one in an episode, follow on messages that the agent had changed",
    means:
      "the agent rewrites what was said, so those answers are trained behind a context of their own: it is read again",
    remedy:
      "let the agent send the conversation back as it was, and add to its end; a summary in place of it is fine now and then",
    figures: ["changed", "answers"],
    says: (changed, answers) =>
      changed >= 1 && changed >= answers / 4
        ? `${percent(changed / answers)} of the answers follow on messages that the agent had changed`
        : undefined,
  }),
  agentRule({
    id: "agent-gives-up",
    levels: ["warning"],
    when: "over three steps a fifth of the sampled tokens are answers that their clients did not wait for",
    means:
      "the agent gives up before an answer is there and asks for another, so answers are paid for and not trained on",
    remedy:
      "raise the timeout of the agent's client (for openai: timeout and maxRetries), or ask for shorter answers (max_tokens)",
    figures: ["lost_tokens", "tokens"],
    says: (lost, tokens) =>
      lost > 0 && lost >= tokens / 5
        ? `${percent(lost / tokens)} of the sampled tokens are answers that the agents did not wait for`
        : undefined,
  }),
];
