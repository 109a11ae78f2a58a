// How the model families write their calls of tools, and how they are read. Marks that are tokens are recognised as tokens: the same
// characters written out in an answer are text. What looks like a call and cannot be read is kept as it stands.
import { isRecord, jsonObject } from "../core/json.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { RenderOptions, ToolCall, ToolDeclaration } from "./messages.ts";
import { type JsonValue, parseJson, spacedJson } from "./template/json-values.ts";

/** One family's way of writing calls. */
export interface CallFormat {
  /** What begins a call. */
  open: string;
  /** What ends it; undefined where the next one, or the end of the answer, does. */
  close?: string;
  /** What stands around several calls and says nothing. */
  around?: readonly string[];
  /** The calls that the text between `open` and `close` says; undefined where it says none. */
  read(inside: string, schemaOf: SchemaOf): ToolCall[] | undefined;
  /** The call that a whole answer is, in families that write calls without marks. */
  readWhole?(text: string): ToolCall[] | undefined;
}

type Json = Record<string, unknown>;
/** The JSON schema of a parameter, where the tool is known. */
export type SchemaOf = (tool: string, parameter: string) => Json | undefined;

/** A JSON value with each number as it is spelled; undefined for other text. */
function exact(json: string): JsonValue | undefined {
  try {
    return parseJson(json, "");
  } catch {
    return undefined;
  }
}

/** Arguments as an object, or as JSON text where JavaScript would change them: `12345678901234567890`, `1.0`, keys that are numbers. */
function argumentsOf(value: JsonValue | undefined): ToolCall["arguments"] | undefined {
  if (!(value instanceof Map)) return undefined;
  try {
    const text = spacedJson(value);
    const plain = JSON.parse(text) as Json;
    return spacedJson(plain) === text ? plain : text;
  } catch {
    return undefined; // nested deeper than the stack is
  }
}

/** `{"name": …, "arguments": {…}}` */
function jsonCall(value: JsonValue | undefined, key = "arguments"): ToolCall | undefined {
  if (!(value instanceof Map)) return undefined;
  const name = value.get("name");
  const parameters = argumentsOf(value.get(key));
  return typeof name === "string" && name !== "" && parameters !== undefined
    ? { name, arguments: parameters }
    : undefined;
}

const list = (call: ToolCall | undefined) => call && [call];

/** Arguments as they are called with; undefined where the text says none. */
export const jsonArguments = (text: string): ToolCall["arguments"] | undefined => argumentsOf(exact(text));

/** Arguments as JavaScript has them. */
export function plainArguments(given: ToolCall["arguments"]): Json {
  const value = typeof given === "string" ? jsonObject(given) : given;
  return isRecord(value) ? value : {};
}

/** A text before and after a mark; nothing after one that is not there. */
function cutAt(text: string, mark: string): [before: string, after: string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + mark.length)];
}

/** A name before its JSON arguments. */
function named(name: string, json: string, id?: string): ToolCall[] | undefined {
  const parameters = jsonArguments(json);
  if (name === "" || parameters === undefined) return undefined;
  return [{ name, arguments: parameters, ...(id !== undefined && { id }) }];
}

/** A parameter written as text: what its schema says it is. Where nothing is known it stays text. */
function typed(text: string, schema: Json | undefined): JsonValue {
  const types = [schema?.["type"]].flat();
  if (schema === undefined || types.includes("string") || types[0] === undefined) return text;
  const bare = text.trim();
  // Python's spelling, where a template prints values as Python does.
  const spelled = { True: true, False: false, None: null, null: null }[bare];
  return spelled === undefined ? (exact(bare) ?? text) : spelled;
}

/** Hermes and Qwen: JSON between two tags. */
const hermes: CallFormat = {
  open: "<tool_call>",
  close: "</tool_call>",
  read: (inside) => list(jsonCall(exact(inside))),
};

/**
 * Reads a call whose parameters have a tag each. `call` has the groups `name` and `body`; `parameter` the groups `key` and `text`, and
 * `string` where the tag says whether the text is one. What stands between the tags makes it no call.
 */
const taggedCall =
  (
    call: RegExp,
    parameter: RegExp,
    read: (text: string, schema: Json | undefined, isString: boolean) => JsonValue,
  ): CallFormat["read"] =>
  (inside, schemaOf) => {
    const { name, body } = call.exec(inside)?.groups ?? {};
    if (name === undefined || body === undefined || body.replaceAll(parameter, "").trim() !== "") return undefined;
    const parameters = new Map<string, JsonValue>();
    for (const { groups } of body.matchAll(parameter)) {
      const { key, text, string } = groups as { key: string; text: string; string?: string };
      parameters.set(key, read(text, schemaOf(name, key), string === "true"));
    }
    return list({ name, arguments: argumentsOf(parameters)! });
  };

/** Qwen3-Coder, Qwen3.5 and later, Nemotron 3: `<function=name>` with `<parameter=key>` in it. */
const functionTags: CallFormat = {
  ...hermes,
  read: taggedCall(
    /^\s*<function=(?<name>[^>\n]+)>(?<body>[\s\S]*?)<\/function>\s*$/,
    /<parameter=(?<key>[^>\n]+)>\n?(?<text>[\s\S]*?)\n?<\/parameter>/g,
    typed,
  ),
};

/** GLM: the name, then `<arg_key>` and `<arg_value>` in pairs. Text is bare, everything else JSON. */
const argumentPairs: CallFormat = {
  ...hermes,
  read: taggedCall(
    /^\s*(?<name>[^\s<]+)\s*(?<body>[\s\S]*)$/,
    /<arg_key>(?<key>[\s\S]*?)<\/arg_key>\s*<arg_value>(?<text>[\s\S]*?)<\/arg_value>/g,
    (text, schema) => (schema ? typed(text, schema) : (exact(text) ?? text)),
  ),
};

const deepseek: CallFormat = {
  open: "<｜tool▁call▁begin｜>",
  close: "<｜tool▁call▁end｜>",
  around: ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
  read: (inside) => {
    const [name, json] = cutAt(inside, "<｜tool▁sep｜>");
    return named(name.trim(), json);
  },
};

/** DeepSeek V3.2 writes tags of its own. */
const dsml: CallFormat = {
  open: "<｜DSML｜invoke",
  close: "</｜DSML｜invoke>",
  around: ["<｜DSML｜function_calls>", "</｜DSML｜function_calls>"],
  read: taggedCall(
    /^ name="(?<name>[^"]+)">(?<body>[\s\S]*)$/,
    /<｜DSML｜parameter name="(?<key>[^"]+)" string="(?<string>true|false)">(?<text>[\s\S]*?)<\/｜DSML｜parameter>/g,
    (text, _schema, isString) => (isString ? text : (exact(text) ?? text)),
  ),
};

/** Kimi names its calls, `functions.name:0`, and asks for the same name with the result. */
const kimi: CallFormat = {
  open: "<|tool_call_begin|>",
  close: "<|tool_call_end|>",
  around: ["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"],
  read: (inside) => {
    const [id, json] = cutAt(inside, "<|tool_call_argument_begin|>");
    const name = /^(?:functions\.)?(.+?)(?::\d+)?$/.exec(id.trim())?.[1];
    return name === undefined ? undefined : named(name, json, id.trim());
  },
};

/** Mistral: `name[ARGS]{…}`, with `[CALL_ID]` in some versions; a JSON list in older ones. */
const mistral: CallFormat = {
  open: "[TOOL_CALLS]",
  read: (inside) => {
    const calls = exact(inside);
    if (Array.isArray(calls)) {
      const read = calls.map((call) => {
        const plain = jsonCall(call);
        const id = call instanceof Map ? call.get("id") : undefined;
        return plain && (typeof id === "string" ? { ...plain, id } : plain);
      });
      return read.length > 0 && read.every((call) => call !== undefined) ? read : undefined;
    }
    const [, name, id, json] = /^\s*([^\s[{]+)(?:\[CALL_ID\]([^[]*))?\[ARGS\]([\s\S]*)$/.exec(inside) ?? [];
    return name === undefined || json === undefined ? undefined : named(name, json, id);
  },
};

/** Llama 3: an answer that is nothing but the JSON of its calls, behind `<|python_tag|>` or bare. */
const llama: CallFormat = {
  open: "<|python_tag|>",
  read: llamaCalls,
  readWhole: llamaCalls,
};

function llamaCalls(text: string): ToolCall[] | undefined {
  const read = (part: string) => {
    const value = exact(part);
    return jsonCall(value, "parameters") ?? jsonCall(value);
  };
  const whole = read(text);
  if (whole) return [whole];
  const calls = text.split(/(?<=\})\s*;\s*(?=\{)/).map(read);
  return calls.length > 1 && calls.every((call) => call !== undefined) ? calls : undefined;
}

/** What tells the families apart is what their templates write. */
const families: readonly (readonly [sign: string, format: CallFormat])[] = [
  ["｜DSML｜", dsml],
  ["<｜tool▁call▁begin｜>", deepseek],
  ["<|tool_call_begin|>", kimi],
  ["[TOOL_CALLS]", mistral],
  ["<|python_tag|>", llama],
  ["<function=", functionTags],
  ["<arg_key>", argumentPairs],
];

/** How the model of a chat template writes its calls. Templates that say nothing else write JSON between `<tool_call>` tags. */
export function callFormatOf(template: string | undefined): CallFormat {
  const said = template?.includes("dsml_token") ? `${template}｜DSML｜` : (template ?? "");
  return families.find(([sign]) => said.includes(sign))?.[1] ?? hermes;
}

/** An answer's text in which the marks of calls that are tokens can be told from the same characters. */
export interface MarkedText {
  text: string;
  /** A mark as it stands in the text. */
  mark(mark: string): string;
  /** A piece of the text as the model wrote it. */
  plain(piece: string): string;
}

/** Decodes an answer. Its marks get a character before them that the answer has nowhere. */
export function markCalls(ids: readonly number[], tokenizer: Tokenizer, format: CallFormat): MarkedText {
  const marks = [format.open, format.close ?? "", ...(format.around ?? [])];
  const tokens = new Map(
    marks.flatMap((mark) => {
      const id = mark === "" ? undefined : tokenizer.tokenId(mark);
      return id === undefined ? [] : [[id, mark] as const];
    }),
  );
  const text = tokenizer.decode(ids);
  if (!ids.some((id) => tokens.has(id))) {
    // No mark is there: whatever looks like one is text.
    const nowhere = (mark: string) => (tokenizer.tokenId(mark) === undefined ? mark : `\u{10FFFF}${mark}\u{10FFFF}`);
    return { text, mark: nowhere, plain: (piece) => piece };
  }
  let sign = 0xe000;
  while (text.includes(String.fromCharCode(sign))) sign++;
  const before = String.fromCharCode(sign);
  const pieces: string[] = [];
  let start = 0;
  for (let index = 0; index <= ids.length; index++) {
    const mark = tokens.get(ids[index]!);
    if (mark === undefined && index < ids.length) continue;
    pieces.push(tokenizer.decode(ids.slice(start, index)), mark === undefined ? "" : before + mark);
    start = index + 1;
  }
  return {
    text: pieces.join(""),
    mark: (mark) => (tokenizer.tokenId(mark) === undefined ? mark : before + mark),
    plain: (piece) => piece.replaceAll(before, ""),
  };
}

/** Looks up parameters in the declarations of tools. */
export function schemas(tools: RenderOptions["tools"] = []): SchemaOf {
  const parametersOf = (tool: ToolDeclaration): [string, Json] | undefined => {
    const value = typeof tool === "string" ? jsonObject(tool) : tool;
    const declared = isRecord(value) && isRecord(value["function"]) ? value["function"] : value;
    if (!isRecord(declared) || typeof declared["name"] !== "string") return undefined;
    const { parameters } = declared;
    const properties = isRecord(parameters) ? parameters["properties"] : undefined;
    return [declared["name"], isRecord(properties) ? properties : {}];
  };
  const known = new Map(tools.map(parametersOf).filter((entry) => entry !== undefined));
  return (tool, parameter) => {
    const properties = known.get(tool);
    const schema = properties && Object.hasOwn(properties, parameter) ? properties[parameter] : undefined;
    return isRecord(schema) ? schema : undefined;
  };
}
