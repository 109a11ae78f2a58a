// One chat template, ready to be rendered as the reference implementation (transformers, on Python's Jinja) renders it.
import { Environment, Interpreter, Template } from "@huggingface/jinja";
import { messageOf } from "../../core/errors.ts";
import { RendererError } from "../errors.ts";
import { ControlText, generationEnd, generationStart } from "./control-text.ts";
import { functions } from "./functions.ts";
import { pythonText } from "./python.ts";
import { functionName, type Node, rewrite, variablesOf } from "./rewrite.ts";
import { isString, makeFunction, makeString, toValue, type Value } from "./runtime-values.ts";

export interface TemplateOptions {
  /** For messages: whose template it is. */
  name: string;
  /** Texts that are control tokens only where the template writes them. */
  controlTokens?: Iterable<string>;
  /** `bos_token`, `eos_token`, …: what the template knows by name. They are the template's own text. */
  specialTokens?: Readonly<Record<string, string>>;
  /** What `strftime_now` gives. */
  now?: Date;
  /** For templates that build a control token around a role's name, `'<|' + message.role + '|>'`: roles are ours, not from outside. */
  ownRoles?: boolean;
}

/** What a template is rendered with, in its own spelling; `messages` and `tools` are text from outside. */
export interface TemplateInput {
  messages: readonly unknown[];
  tools?: readonly unknown[] | undefined;
  addGenerationPrompt: boolean;
  /** Switches such as `enable_thinking`: ours, not from outside. */
  settings?: Readonly<Record<string, unknown>>;
}

export class ChatTemplate {
  readonly controls: ControlText;
  /** The names it reads, its own variables included. */
  readonly variables: ReadonlySet<string>;
  /** True where it says itself which part of a conversation the model wrote. */
  readonly marksGeneration: boolean;
  readonly #name: string;
  readonly #program: Node;
  readonly #specialTokens: Readonly<Record<string, string>>;
  readonly #now: Date;
  readonly #ownRoles: boolean;
  /** What every rendering knows; each has an environment of its own within it. */
  readonly #functions: Environment;

  constructor(source: string, options: TemplateOptions) {
    this.#name = options.name;
    this.#specialTokens = options.specialTokens ?? {};
    this.#now = options.now ?? new Date();
    this.#ownRoles = options.ownRoles ?? false;
    this.controls = new ControlText(options.controlTokens ?? []);
    this.#functions = this.#define();
    this.marksGeneration = generationTag.test(source);
    const parsed = this.#explain("cannot be read", () => new Template(withGenerationMarks(source)).parsed);
    this.variables = variablesOf(parsed);
    this.#program = rewrite(parsed, (literal) => this.controls.mark(literal));
  }

  /** The rendered text in which the template's control tokens are marked; `controls` reads it. */
  render(input: TemplateInput): string {
    const environment = new Environment(this.#functions);
    const foreign = (text: string) => this.controls.escape(text);
    const same = (text: string) => text;
    const set = (name: string, value: unknown, spell: (text: string) => string) =>
      environment.variables.set(name, toValue(value, spell) as never);
    for (const [name, token] of Object.entries(this.#specialTokens))
      set(name, token, (text) => this.controls.mark(text));
    set("documents", null, same);
    for (const [name, value] of Object.entries(input.settings ?? {})) set(name, value, same);
    const messages = toValue(input.messages, foreign);
    if (this.#ownRoles) this.#markRoles(messages);
    environment.variables.set("messages", messages as never);
    set("tools", input.tools ?? null, foreign);
    set("add_generation_prompt", input.addGenerationPrompt, same);
    return this.#explain("failed", () => {
      const result = new Interpreter(environment).run(this.#program as never) as unknown as Value;
      return String(result.value);
    });
  }

  #markRoles(messages: Value): void {
    for (const message of messages.value as { value: Map<string, Value> }[]) {
      const role = message.value.get("role");
      if (isString(role)) message.value.set("role", makeString(this.controls.spell(role.value)));
    }
  }

  #define(): Environment {
    const environment = new Environment();
    const { unmark } = this.controls;
    const define = (name: string, native: (...args: Value[]) => Value) =>
      environment.variables.set(name, makeFunction((args) => native(...args)) as never);
    for (const [word, value] of Object.entries({ true: true, false: false, none: null })) {
      environment.set(word, value);
      environment.set(word[0]!.toUpperCase() + word.slice(1), value);
    }
    environment.set("range", range);
    define("raise_exception", (message) => {
      throw new RaisedError(message === undefined ? "" : this.controls.plain(pythonText(message)));
    });
    define("strftime_now", (format) => makeString(formatTime(this.#now, isString(format) ? format.value : "")));
    for (const kind of ["operator", "method", "filter"] as const)
      for (const [name, native] of Object.entries(functions[kind]))
        define(functionName(kind, name), native.bind(null, unmark));
    define(functionName("print", "value"), (value) => makeString(pythonText(value!)));
    return environment;
  }

  #explain<T>(what: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      const refused = error instanceof RaisedError;
      throw new RendererError(
        refused ? "renderer/template-refuses" : "renderer/bad-chat-template",
        refused
          ? `The chat template of ${this.#name} refuses this conversation: ${error.message}. Change the conversation, or use another renderer.`
          : `The chat template of ${this.#name} ${what}: ${messageOf(error)}. Use the template of the model's repository.`,
        { cause: error },
      );
    }
  }
}

/** The template's own raise_exception. */
class RaisedError extends Error {}

const generationTag = /\{%(-?)\s*(end)?generation\s*(-?)%\}/;

/** The interpreter drops generation blocks; a character in the output in their place tells where they were. */
function withGenerationMarks(source: string): string {
  return source.replaceAll(
    new RegExp(generationTag, "g"),
    (_, left: string, end: string | undefined, right: string) => {
      const mark = end === undefined ? generationStart : generationEnd;
      return `{%${left} if true %}{{ '${mark}' }}{% endif ${right}%}`;
    },
  );
}

function range(start: number, stop?: number, step = 1): number[] {
  const [from, to] = stop === undefined ? [0, start] : [start, stop];
  // The reference's limit: a template is untrusted.
  if (Math.abs((to - from) / step) > 100_000) throw new Error(`range(${from}, ${to}, ${step}) is too long`);
  const result: number[] = [];
  for (let value = from; step > 0 ? value < to : value > to; value += step) result.push(value);
  return result;
}

const months = "January February March April May June July August September October November December".split(" ");
const days = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

/** strftime in English, whatever the machine's language. */
function formatTime(now: Date, format: string): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const codes: Readonly<Record<string, string>> = {
    Y: String(now.getFullYear()),
    y: two(now.getFullYear() % 100),
    m: two(now.getMonth() + 1),
    d: two(now.getDate()),
    B: months[now.getMonth()]!,
    b: months[now.getMonth()]!.slice(0, 3),
    A: days[now.getDay()]!,
    a: days[now.getDay()]!.slice(0, 3),
    H: two(now.getHours()),
    I: two(now.getHours() % 12 || 12),
    M: two(now.getMinutes()),
    S: two(now.getSeconds()),
    p: now.getHours() < 12 ? "AM" : "PM",
    "%": "%",
  };
  return format.replaceAll(/%-?([A-Za-z%])/g, (whole, code: string) => {
    const text = codes[code];
    if (text === undefined) throw new Error(`strftime_now does not know ${whole}`);
    return whole[1] === "-" ? text.replace(/^0(?=.)/, "") : text;
  });
}
