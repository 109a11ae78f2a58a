// Changes a parsed template so that it computes as Python's Jinja does: operators, methods and filters in which the JavaScript
// interpreter differs become calls of our own functions, and the template's own texts are marked. Node by node; the tree is copied.
import { Template } from "@huggingface/jinja";

/** A node of the interpreter's syntax tree. */
export interface Node {
  type: string;
  [field: string]: unknown;
}

/** What calls are called in the rewritten tree. No template can name them: an identifier has no space. */
export const functionName = {
  operator: (operator: string) => `operator ${operator}`,
  method: (name: string) => `method ${name}`,
  filter: (name: string) => `filter ${name}`,
  print: "print value",
};

export interface RewriteRules {
  operators: ReadonlySet<string>;
  methods: ReadonlySet<string>;
  filters: ReadonlySet<string>;
  /** Applied to each text that the template writes. */
  mark(literal: string): string;
}

/** What prints a value, unlike statements and the template's own text. */
const isExpression = ({ type }: Node): boolean =>
  type !== "StringLiteral" && /^(Identifier|Ternary)$|(Expression|Literal)$/.test(type);

/** The rewritten copy of a parsed template. */
export function rewrite(program: unknown, rules: RewriteRules): Node {
  return copy(program as Node, rules) as Node;
}

function copy(value: unknown, rules: RewriteRules): unknown {
  if (Array.isArray(value)) return value.map((item) => copy(item, rules));
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [copy(key, rules), copy(item, rules)]));
  if (!isNode(value)) return value;
  const node = clone(value, (field, item) =>
    isBlock(field) ? (item as Node[]).map((each) => printed(copy(each, rules) as Node)) : copy(item, rules),
  );
  switch (node.type) {
    case "StringLiteral":
      return { ...asNode(node), value: rules.mark(node["value"] as string) };
    case "BinaryExpression": {
      const operator = (node["operator"] as { value: string }).value;
      return rules.operators.has(operator)
        ? call(functionName.operator(operator), [node["left"], node["right"]])
        : node;
    }
    case "UnaryExpression":
      return (node["operator"] as { value: string }).value === "not"
        ? call(functionName.operator("not"), [node["argument"]])
        : node;
    case "CallExpression": {
      const callee = node["callee"] as Node;
      const name =
        callee.type === "MemberExpression" && !callee["computed"] ? (callee["property"] as Node)["value"] : "";
      return rules.methods.has(name as string)
        ? call(functionName.method(name as string), [callee["object"], ...(node["args"] as unknown[])])
        : node;
    }
    case "FilterExpression": {
      const filter = node["filter"] as Node;
      const [name, args] =
        filter.type === "Identifier"
          ? [filter["value"], []]
          : [(filter["callee"] as Node)["value"], filter["args"] as unknown[]];
      return rules.filters.has(name as string)
        ? call(functionName.filter(name as string), [node["operand"], ...args])
        : node;
    }
    default:
      return node;
  }
}

/** The names of the variables that a template reads: what it can be told. */
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
const printed = (node: Node): Node => (isExpression(node) ? call(functionName.print, [node]) : node);

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
