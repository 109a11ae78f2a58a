// Changes a parsed template so that it computes as Python's Jinja does: operators, methods and filters in which the JavaScript
// interpreter differs become calls of our own functions, and the template's own texts are marked. Node by node; the tree is copied.
import { Template } from "@huggingface/jinja";
import { functions } from "./functions.ts";

/** A node of the interpreter's syntax tree. */
export interface Node {
  type: string;
  [field: string]: unknown;
}

/** What a function of ours is called in the rewritten tree. No template can name it: an identifier has no space. */
export const functionName = (kind: keyof typeof functions | "print", name: string): string => `${kind} ${name}`;

/** What prints a value, unlike statements and the template's own text. */
const isExpression = ({ type }: Node): boolean =>
  type !== "StringLiteral" && /^(Identifier|Ternary)$|(Expression|Literal)$/.test(type);

/** The rewritten copy of a parsed template; `mark` is applied to each text that the template writes. */
export function rewrite(program: unknown, mark: (literal: string) => string): Node {
  return copy(program, mark) as Node;
}

function copy(value: unknown, mark: (literal: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => copy(item, mark));
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [copy(key, mark), copy(item, mark)]));
  if (!isNode(value)) return value;
  const node = clone(value, (field, item) =>
    isBlock(field) ? (item as Node[]).map((each) => printed(copy(each, mark) as Node)) : copy(item, mark),
  );
  switch (node.type) {
    case "StringLiteral":
      return { ...asNode(node), value: mark(node["value"] as string) };
    case "BinaryExpression":
      return ours(node, "operator", (node["operator"] as Node)["value"], [node["left"], node["right"]]);
    case "UnaryExpression": {
      // A sign is the interpreter's own.
      const { value } = node["operator"] as { value?: string };
      return value === "not" ? ours(node, "operator", value, [node["argument"]]) : node;
    }
    case "CallExpression": {
      const callee = node["callee"] as Node;
      if (callee.type !== "MemberExpression" || callee["computed"]) return node;
      const args = [callee["object"], ...(node["args"] as unknown[])];
      return ours(node, "method", (callee["property"] as Node)["value"], args);
    }
    case "FilterExpression": {
      const filter = node["filter"] as Node;
      const called = filter.type === "Identifier" ? { callee: filter, args: [] } : filter;
      const args = [node["operand"], ...(called["args"] as unknown[])];
      return ours(node, "filter", (called["callee"] as Node)["value"], args);
    }
    default:
      return node;
  }
}

/** A call of our own function, where there is one; else the node as it is. */
const ours = (node: Node, kind: keyof typeof functions, name: unknown, args: unknown[]): Node =>
  Object.hasOwn(functions[kind], name as string) ? call(functionName(kind, name as string), args) : node;

/** The names of the variables that a template reads. */
export function variablesOf(program: unknown): Set<string> {
  const names = new Set<string>();
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item);
    else if (value instanceof Map) for (const [key, item] of value) [key, item].forEach(visit);
    else if (isNode(value)) {
      if (value.type === "Identifier") names.add(value["value"] as string);
      for (const item of Object.values(value)) visit(item);
    }
  };
  visit(program);
  return names;
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";
const isBlock = (field: string) => field === "body" || field === "alternate" || field === "defaultBlock";
const printed = (node: Node): Node => (isExpression(node) ? call(functionName("print", "value"), [node]) : node);

// Nodes of the interpreter's own classes: it asks for them by class in places.
const asNode = (node: Node): Node => Object.assign(Object.create(Object.getPrototypeOf(node) as object) as Node, node);
function clone(node: Node, change: (field: string, value: unknown) => unknown): Node {
  const result = asNode(node);
  for (const [field, value] of Object.entries(node)) if (field !== "type") result[field] = change(field, value);
  return result;
}

const sampleCall = (new Template("{{ f(x) }}").parsed as unknown as { body: Node[] }).body[0]!;

function call(name: string, args: unknown[]): Node {
  const callee = Object.assign(asNode(sampleCall["callee"] as Node), { value: name });
  return Object.assign(asNode(sampleCall), { callee, args });
}
