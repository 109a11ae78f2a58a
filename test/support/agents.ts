// One agent, written with four clients as their users write it: it answers a question with the help of a tool.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { importFrom } from "./npm-packages.ts";

export interface AgentTask {
  endpoint: { baseURL: string; apiKey: string; model: string };
  prompt: string;
  look(key: string): string;
  signal: AbortSignal;
}
export type Agent = (task: AgentTask) => Promise<string>;

const description = "Looks a key up.";
const parameters = {
  type: "object",
  properties: { key: { type: "string" } },
  required: ["key"],
  additionalProperties: false,
} as const;

// biome-ignore lint/suspicious/noExplicitAny: the packages are installed beside this checkout, their types too
type Untyped = any;

/** The agents by their client; `folder` has the packages. */
export const agents = (folder: string): Record<string, Agent> => ({
  async openai({ endpoint, prompt, look, signal }) {
    const { OpenAI } = await importFrom<Untyped>(folder, "openai");
    const { baseURL, apiKey, model } = endpoint;
    const client = new OpenAI({ baseURL, apiKey });
    const messages: Untyped[] = [{ role: "user", content: prompt }];
    const tools = [{ type: "function", function: { name: "look", description, parameters } }];
    for (;;) {
      const { choices } = await client.chat.completions.create({ model, messages, tools }, { signal });
      const { message } = choices[0];
      messages.push(message);
      if (!message.tool_calls) return message.content;
      for (const call of message.tool_calls)
        messages.push({
          role: "tool",
          tool_call_id: call.id,
          content: look(JSON.parse(call.function.arguments).key),
        });
    }
  },
  async "ai generateText"({ endpoint, prompt, look, signal }) {
    const { generateText, isStepCount, stepCountIs, tool, jsonSchema } = await importFrom<Untyped>(folder, "ai");
    const stopWhen = (stepCountIs ?? isStepCount)(20);
    const tools = aiTools({ tool, jsonSchema }, look);
    const { text } = await generateText({
      model: await aiModel(folder, endpoint),
      tools,
      prompt,
      stopWhen,
      abortSignal: signal,
    });
    return text;
  },
  async "ai ToolLoopAgent, streaming"({ endpoint, prompt, look, signal }) {
    const { ToolLoopAgent, tool, jsonSchema } = await importFrom<Untyped>(folder, "ai");
    const agent = new ToolLoopAgent({
      model: await aiModel(folder, endpoint),
      tools: aiTools({ tool, jsonSchema }, look),
    });
    const { textStream, text } = await agent.stream({ prompt, abortSignal: signal });
    for await (const _ of textStream);
    return text;
  },
  async langchain({ endpoint, prompt, look, signal }) {
    const { ChatOpenAI } = await importFrom<Untyped>(folder, "@langchain/openai");
    const { HumanMessage, ToolMessage } = await importFrom<Untyped>(folder, "@langchain/core/messages");
    const { baseURL, apiKey, model } = endpoint;
    const chat = new ChatOpenAI({ model, apiKey, configuration: { baseURL } });
    const bound = chat.bindTools([{ type: "function", function: { name: "look", description, parameters } }]);
    const messages: Untyped[] = [new HumanMessage(prompt)];
    for (;;) {
      const answer = await bound.invoke(messages, { signal });
      messages.push(answer);
      if (!answer.tool_calls?.length) return answer.content;
      for (const { id, args } of answer.tool_calls)
        messages.push(new ToolMessage({ tool_call_id: id, content: look(args.key) }));
    }
  },
});

export function aiTools({ tool, jsonSchema }: Untyped, look: AgentTask["look"]) {
  const execute = async ({ key }: { key: string }) => look(key);
  return { look: tool({ description, inputSchema: jsonSchema(parameters), execute }) };
}

export async function aiModel(
  folder: string,
  { baseURL, apiKey, model }: AgentTask["endpoint"],
  more: object = {},
): Promise<unknown> {
  const { createOpenAICompatible } = await importFrom<Untyped>(folder, "@ai-sdk/openai-compatible");
  return createOpenAICompatible({ name: "whet", baseURL, apiKey, includeUsage: true, ...more })(model);
}

/** With the `openai` package of Python; the tool gives its key in capitals. */
const program = `
import json, os, sys
from openai import OpenAI
client = OpenAI()
tools = [{"type": "function", "function": {"name": "look", "description": "${description}", "parameters": ${JSON.stringify(parameters).replace("false", "False")}}}]
messages = [{"role": "user", "content": sys.stdin.read()}]
while True:
    message = client.chat.completions.create(model=os.environ["OPENAI_MODEL"], messages=messages, tools=tools).choices[0].message
    messages.append(message)
    if not message.tool_calls: break
    for call in message.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": json.loads(call.function.arguments)["key"].upper()})
sys.stdout.write(message.content)
`;

export const pythonAgent =
  (python: string): Agent =>
  async ({ endpoint, prompt, signal }) => {
    const { baseURL, apiKey, model } = endpoint;
    const env = { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey, OPENAI_MODEL: model };
    const running = promisify(execFile)(python, ["-c", program], { env, signal });
    running.child.stdin!.end(prompt);
    return (await running).stdout;
  };
