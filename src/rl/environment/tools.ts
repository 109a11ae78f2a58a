// Tools that a model may call, as people have them: the AI SDK's ToolSet, Mastra's, an MCP client's list, plain objects. They are
// recognised by their shape.
import { messageOf } from "../../core/errors.ts";
import type { ToolDeclaration } from "../../renderers/index.ts";
import { TrainError } from "../resume.ts";
import { toolChanges } from "../tool-changes.ts";
import { type ReadSchema, readSchema } from "./schemas.ts";

/** One tool. `inputSchema` may be Zod 3 or 4, an AI SDK schema, a Standard Schema with JSON, or JSON Schema itself. */
export interface Tool {
  /** The description that the model reads. */
  description?: string | undefined;
  /** Its parameters; `parameters` is an older name of the same. */
  inputSchema?: unknown;
  /** See `inputSchema`. */
  parameters?: unknown;
  /** What it does; text goes to the model as it is, everything else as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: each tool has arguments of its own type
  execute?: ((input: any, options: any) => unknown) | undefined;
}

/** Tools by name; a list whose entries have a name or an id; or an MCP client's `{ tools, callTool }`. */
export type ToolSet =
  | Readonly<Record<string, Tool>>
  | readonly (Tool & ({ name: string } | { id: string }))[]
  | {
      tools: readonly { name: string; description?: string | undefined; inputSchema?: unknown }[];
      callTool(call: { name: string; arguments: Record<string, unknown> }): unknown;
    };

/** A call that the model made. */
export interface Call {
  /** Names the call; `chat.tool` takes it. */
  id: string;
  /** Of the tool. */
  name: string;
  /** What it is called with. */
  arguments: Readonly<Record<string, unknown>>;
}

interface ReadTool {
  name: string;
  schema: ReadSchema;
  declaration: ToolDeclaration;
  execute: Tool["execute"];
}

export interface Toolbox {
  readonly declarations: readonly ToolDeclaration[];
  /** What a call gives, as the model reads it; what goes wrong is text for the model too. */
  run(call: Call, options: { signal: AbortSignal }): Promise<{ text: string; failed: boolean }>;
}

/** Reads a set of tools; a mistake in it ends the run, as nothing could be learned with it. */
export async function readTools(given: ToolSet | undefined): Promise<Toolbox | undefined> {
  const entries = given === undefined ? [] : namedTools(given);
  if (entries.length === 0) return undefined;
  const tools = new Map<string, ReadTool>();
  for (const [name, tool] of entries) {
    checkTool(name, tool, tools);
    const { description = "" } = tool;
    const schema = await readSchema(tool.inputSchema ?? tool.parameters).catch((error: unknown) => {
      throw bad(
        `The schema of the tool ${JSON.stringify(name)} cannot be read: ${messageOf(error)}. Give inputSchema as Zod, as a Standard Schema, or as JSON Schema.`,
      );
    });
    const declaration = { type: "function", function: { name, description, parameters: schema.json } };
    tools.set(name, { name, schema, declaration, execute: tool.execute });
  }
  return {
    declarations: [...tools.values()].map(({ declaration }) => declaration),
    run: async (call, options) => {
      const tool = tools.get(call.name);
      if (!tool)
        return {
          text: `Error: there is no tool ${call.name}; there are ${[...tools.keys()].join(", ")}.`,
          failed: true,
        };
      try {
        const checked = await tool.schema.check(call.arguments);
        if ("problem" in checked) return { text: `Error: ${checked.problem}`, failed: true };
        const input = tool.execute ? await tool.execute(checked.value, optionsOf(call, checked.value, options)) : "";
        return { text: textOf(input), failed: false };
      } catch (error) {
        if (isUnavailable(error)) throw error;
        return { text: `Error: ${messageOf(error)}`, failed: true };
      }
    },
  };
}

const bad = (what: string) => new TrainError("rl/bad-tool", what);

function checkTool(name: string, tool: unknown, others: ReadonlyMap<string, unknown>): void {
  const called = `The tool ${JSON.stringify(name)}`;
  if (name === "") throw bad('A tool is called "". Give it the name by which the model is to call it.');
  if (others.has(name)) throw bad(`Two tools are called ${JSON.stringify(name)}. Give each a name of its own.`);
  if (typeof tool !== "object" || tool === null)
    throw bad(
      `${called} is ${typeof tool === "function" ? "a function" : String(tool)}. Give { description, inputSchema, execute }.`,
    );
  const { description, execute } = tool as Record<string, unknown>;
  if (description !== undefined && typeof description !== "string")
    throw bad(
      `The description of the tool ${JSON.stringify(name)} is ${JSON.stringify(description)}. Give text, which the model reads.`,
    );
  if (execute !== undefined && typeof execute !== "function")
    throw bad(`${called} has execute=${JSON.stringify(execute)}. Give a function.`);
}

/** What the episodes of an environment have in common, as it was first read. */
const common = new WeakMap<object, Promise<Toolbox | undefined>>();

/** Reads tools that all episodes have in common: one that changed them would change what the others see, and no seed would know when. */
export async function readCommonTools(given: ToolSet): Promise<Toolbox | undefined> {
  const first = common.get(given) ?? readTools(given);
  common.set(given, first);
  const [before, now] = [await first, await readTools(given)];
  const changes = toolChanges(before?.declarations ?? [], now?.declarations ?? []);
  if (changes === undefined) return now;
  throw bad(
    `The environment's tools, which all episodes have in common, are no longer what they were: ${changes}. ` +
      "Make them for each episode, which may then change its own: tools: () => ({ … }).",
  );
}

/** An outage of the environment's: thrown by a tool or a run, the episode is begun again, and left out where that does not help. */
export class Unavailable extends Error {
  /** By this it is recognised. */
  override readonly name = "Unavailable";
}

/** By name: a module may have a copy of this package of its own. */
export const isUnavailable = (error: unknown): boolean => error instanceof Error && error.name === "Unavailable";

function namedTools(given: ToolSet): [string, Tool][] {
  if (typeof given !== "object" || given === null)
    throw bad(
      `tools is ${JSON.stringify(given)}. Give tools by their names, such as { search: { description, inputSchema, execute } }.`,
    );
  if (Array.isArray(given))
    return (given as readonly (Tool & { name?: string; id?: string })[]).map((tool, index) => {
      const name = tool.name ?? tool.id;
      if (name !== undefined) return [name, tool];
      throw bad(`Tool ${index} of the list has neither a name nor an id. Give it one.`);
    });
  if ("callTool" in given && typeof given.callTool === "function" && Array.isArray(given.tools)) {
    const client = given as Extract<ToolSet, { callTool: unknown }>;
    return client.tools.map(({ name, ...tool }) => [
      name,
      { ...tool, execute: (input: Record<string, unknown>) => client.callTool({ name, arguments: input }) },
    ]);
  }
  return Object.entries(given as Readonly<Record<string, Tool>>);
}

/** The second argument: the AI SDK's options, and what Mastra's tools read of theirs. */
const optionsOf = (call: Call, input: unknown, { signal }: { signal: AbortSignal }) => ({
  toolCallId: call.id,
  messages: [],
  abortSignal: signal,
  context: input,
});

/** A result as text: MCP's parts are joined, what is no text becomes JSON. */
function textOf(result: unknown): string {
  if (typeof result === "string") return result;
  const { content } = (result ?? {}) as { content?: unknown };
  if (Array.isArray(content) && content.every((part: { type?: unknown }) => typeof part?.type === "string"))
    return content.map((part: { text?: string }) => part.text ?? JSON.stringify(part)).join("\n");
  return result === undefined ? "" : (JSON.stringify(result) ?? String(result));
}
