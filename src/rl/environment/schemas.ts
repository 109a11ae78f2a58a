// The schemas of tools, as the libraries in use write them: Zod 3 and 4, the AI SDK's, Standard Schema, and plain JSON Schema. Each is
// recognised by its shape, so that nothing of theirs is needed here.
import { z } from "zod";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A schema as JSON, and what checks a value against it: the value as the tool gets it, or what is wrong with it, in its own words. */
export interface ReadSchema {
  json: JsonSchema;
  check(value: unknown): Promise<{ value: unknown } | { problem: string }>;
}

interface Issue {
  message: string;
  path?: readonly unknown[] | undefined;
}
interface StandardSchema {
  validate(value: unknown): Promise<Checked> | Checked;
  jsonSchema?: { input(options: { target: string }): unknown };
}
type Checked = { value: unknown; issues?: undefined } | { issues: readonly Issue[] };
type Anything = Record<string | symbol, unknown>;

const isObject = (value: unknown): value is Anything => typeof value === "object" && value !== null;
const aiSchema = Symbol.for("vercel.ai.schema");

/** Reads a schema of any of these kinds; undefined: a tool without parameters. Throws where it is of none. */
export async function readSchema(given: unknown): Promise<ReadSchema> {
  // The AI SDK has schemas that are made when they are first asked for.
  const schema = typeof given === "function" && !("~standard" in given) ? (given as () => unknown)() : given;
  if (schema === undefined) return { json: { type: "object", properties: {} }, check: async (value) => ({ value }) };
  if (!isObject(schema) && typeof schema !== "function") throw new TypeError(`${String(schema)} is no schema`);
  const whole = schema as Anything;
  if (aiSchema in whole) return readAiSchema(whole);
  const standard = whole["~standard"] as StandardSchema | undefined;
  if (!standard) {
    if (isZod3(whole)) return { json: zod3Json(whole), check: checkWithZod3(whole) };
    const json = copied(whole);
    if (json["type"] !== undefined && json["type"] !== "object")
      throw new TypeError(`its type is ${JSON.stringify(json["type"])}, and a tool's parameters are an object`);
    return { json, check: async (value) => checkPlain(value, json) };
  }
  return { json: standardJson(whole, standard), check: async (value) => outcomeOf(await standard.validate(value)) };
}

async function readAiSchema(schema: Anything): Promise<ReadSchema> {
  const json = copied(await schema["jsonSchema"]);
  const validate = schema["validate"] as ((value: unknown) => Promise<AiChecked> | AiChecked) | undefined;
  if (!validate) return { json, check: async (value) => checkPlain(value, json) };
  return {
    json,
    check: async (value) => {
      const result = await validate(value);
      return result.success
        ? { value: result.value }
        : { problem: result.error?.message ?? "the arguments do not fit" };
    },
  };
}
/** As it is now: whoever has it may go on changing it. */
const copied = (json: unknown): JsonSchema => JSON.parse(JSON.stringify(json)) as JsonSchema;

type AiChecked = { success: true; value: unknown } | { success: false; error?: Error };

function standardJson(schema: Anything, standard: StandardSchema): JsonSchema {
  if (standard.jsonSchema) return withoutDialect(standard.jsonSchema.input({ target: "draft-2020-12" }));
  if ("_zod" in schema) return withoutDialect(z.toJSONSchema(schema as unknown as z.ZodType, { io: "input" }));
  if (isZod3(schema)) return zod3Json(schema);
  throw new TypeError(
    "its schema has no ~standard.jsonSchema: give JSON Schema, Zod, or a newer version of its library",
  );
}

const withoutDialect = (json: unknown): JsonSchema =>
  Object.fromEntries(Object.entries(json as JsonSchema).filter(([key]) => key !== "$schema"));

const outcomeOf = (checked: Checked): { value: unknown } | { problem: string } =>
  checked.issues ? { problem: checked.issues.map(issueText).join("; ") } : { value: checked.value };

const issueText = ({ message, path = [] }: Issue): string => {
  const names = path.map((part) => String(isObject(part) ? part["key"] : part));
  return names.length > 0 ? `${names.join(".")}: ${message}` : message;
};

const isZod3 = (schema: Anything): boolean =>
  isObject(schema["_def"]) && typeof schema["_def"]["typeName"] === "string";

function checkWithZod3(schema: Anything): ReadSchema["check"] {
  const parse = schema["safeParseAsync"] as (
    value: unknown,
  ) => Promise<{ success: true; data: unknown } | { success: false; error: { issues: Issue[] } }>;
  return async (value) => {
    const result = await parse.call(schema, value);
    return result.success ? { value: result.data } : { problem: result.error.issues.map(issueText).join("; ") };
  };
}

/** What of Zod 3 tools are made of, as JSON Schema; anything else may be any value, and is checked by Zod itself. */
function zod3Json(schema: Anything): JsonSchema {
  const definition = schema["_def"] as Anything;
  const inner = (key: string) => zod3Json(definition[key] as Anything);
  const described = (json: JsonSchema): JsonSchema =>
    typeof definition["description"] === "string" ? { ...json, description: definition["description"] } : json;
  switch (String(definition["typeName"]).replace(/^Zod/, "")) {
    case "Object": {
      const shape = Object.entries((definition["shape"] as () => Record<string, Anything>)());
      const properties = Object.fromEntries(shape.map(([name, part]) => [name, zod3Json(part)]));
      const required = shape.flatMap(([name, part]) => ((part["isOptional"] as () => boolean)() ? [] : [name]));
      return described({ type: "object", properties, required });
    }
    case "String":
      return described({ type: "string" });
    case "Number": {
      const checks = (definition["checks"] ?? []) as { kind: string }[];
      return described({ type: checks.some(({ kind }) => kind === "int") ? "integer" : "number" });
    }
    case "Boolean":
      return described({ type: "boolean" });
    case "Enum":
      return described({ type: "string", enum: definition["values"] });
    case "Literal":
      return described({ const: definition["value"] });
    case "Array":
      return described({ type: "array", items: inner("type") });
    case "Record":
      return described({ type: "object", additionalProperties: inner("valueType") });
    case "Union":
    case "DiscriminatedUnion":
      return described({ anyOf: (definition["options"] as Anything[]).map(zod3Json) });
    case "Nullable":
      return described({ anyOf: [inner("innerType"), { type: "null" }] });
    case "Optional":
    case "Default":
      return described(inner("innerType"));
    case "Effects":
      return described(inner("schema"));
    default:
      return described({});
  }
}

/** Plain JSON Schema: what is missing, what has another type, what is none of the values there are. */
function checkPlain(value: unknown, schema: JsonSchema, path = ""): { value: unknown } | { problem: string } {
  const at = path === "" ? "the arguments" : path;
  const types = [schema["type"]].flat().filter((type) => typeof type === "string");
  if (types.length > 0 && !types.some((type) => hasType(value, type)))
    return { problem: `${at}: expected ${types.join(" or ")}, got ${JSON.stringify(value)?.slice(0, 60)}` };
  if (Array.isArray(schema["enum"]) && !schema["enum"].includes(value))
    return { problem: `${at}: expected one of ${JSON.stringify(schema["enum"])}, got ${JSON.stringify(value)}` };
  if (!isObject(value) || Array.isArray(value)) return { value };
  const missing = ((schema["required"] ?? []) as string[]).filter((name) => !Object.hasOwn(value, name));
  if (missing.length > 0) return { problem: `${missing.join(", ")}: required and missing` };
  for (const [name, part] of Object.entries((schema["properties"] ?? {}) as Record<string, JsonSchema>)) {
    const checked = Object.hasOwn(value, name) && isObject(part) ? checkPlain(value[name], part, name) : { value };
    if ("problem" in checked) return checked;
  }
  return { value };
}

function hasType(value: unknown, type: string): boolean {
  if (type === "null") return value === null;
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  return type === "object" ? isObject(value) && !Array.isArray(value) : typeof value === type;
}
