// A request for a chat completion as it comes over the wire, and what of it is refused.
import { z } from "zod";
import type { ToolDeclaration } from "../renderers/index.ts";
import { parseJson, spacedJson } from "../renderers/template/json-values.ts";
import { EndpointError } from "./errors.ts";

const Part = z.looseObject({ type: z.string() });
const WireCall = z.looseObject({
  id: z.string().nullish(),
  type: z.string().nullish(),
  function: z.looseObject({
    name: z.string(),
    arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
  }),
});
const WireMessage = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: z.union([z.string(), z.array(Part)]).nullish(),
  reasoning_content: z.string().nullish(),
  reasoning: z.string().nullish(),
  tool_calls: z.array(WireCall).nullish(),
  tool_call_id: z.string().nullish(),
});
export type WireMessage = z.output<typeof WireMessage>;

const WireTool = z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: z.string() }) });
const count = z.int().min(1).nullish();

export const ChatRequest = z.looseObject({
  model: z.string().nullish(),
  messages: z.array(WireMessage).min(1),
  tools: z.array(WireTool).nullish(),
  tool_choice: z.unknown().optional(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: count,
  max_completion_tokens: count,
  n: count,
  temperature: z.number().min(0).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().nullish(),
  seed: z.int().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
});
/** `declared`: its tools, as text where JavaScript would spell their numbers otherwise. */
export type ChatRequest = z.output<typeof ChatRequest> & { declared?: readonly ToolDeclaration[] };

/** Reads a body, which is `text`; what no server of an open model does either is refused with a sentence. */
export function readRequest(body: unknown, text = JSON.stringify(body)): ChatRequest {
  const read = ChatRequest.safeParse(body);
  if (!read.success) {
    const { path, message } = read.error.issues[0]!;
    const where = path.length > 0 ? path.map(String).join(".") : "the body";
    throw new EndpointError(400, "endpoint/bad-request", `${where}: ${message}. Send a request for a chat completion.`);
  }
  const request = read.data;
  const { response_format: format, tool_choice: choice } = request;
  if (format && format.type !== "text")
    throw new EndpointError(
      400,
      "endpoint/response-format",
      `response_format ${JSON.stringify(format.type)} would force tokens that the model did not choose. Leave it out, and ask for the form in the prompt.`,
    );
  if (choice !== undefined && choice !== null && choice !== "auto" && choice !== "none")
    throw new EndpointError(
      400,
      "endpoint/tool-choice",
      `tool_choice ${JSON.stringify(choice)} would force tokens that the model did not choose. Use "auto" or "none".`,
    );
  return { ...request, declared: exactTools(request, text) };
}

/** The tools as they were spelled: `1.0` and integers beyond 2^53 are not what JavaScript writes of them. */
function exactTools({ tools }: ChatRequest, text: string): readonly ToolDeclaration[] {
  if (!tools || text.includes(JSON.stringify(tools))) return tools ?? [];
  const whole = parseJson(text, "The body");
  const spelled = whole instanceof Map ? whole.get("tools") : undefined;
  return tools.map((tool, index) => {
    const exact = spacedJson((spelled as readonly unknown[])[index]);
    return exact === spacedJson(tool) ? tool : exact;
  });
}

/** The tools that the model is shown. */
export const toolsOf = ({ declared = [], tool_choice: choice }: ChatRequest): readonly ToolDeclaration[] =>
  choice === "none" ? [] : declared;
