// Reads a literal as languages with types write it, and Lua: tests of published sets spell a list as std::vector<long>({(long)1}), vec![1],
// new ArrayList<Long>(Arrays.asList(1l)), []int{1} or {1}. Names, operators and calls that make something else are refused.
import { type Json, JsonNumber, type JsonObject } from "./json.ts";
import { readPythonLiteral } from "./python-literal.ts";
import { Reader, Refused } from "./reader.ts";

const cast = /\(\s*[A-Za-z_][\w:<>, *&]*\)(?=\s*[-\w"'({[.])/y;
const goType = /(?:(?:\[\d*\])+|map\[\w+\](?:\[\])*)(?:interface\{\}|[\w.]+)(?=\{)/y;
const numeral =
  /([-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)_?(?:[fFdDlLuU]{1,3}|[iuf](?:8|16|32|64|128|size))?(?![\w.])/y;
const text = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y;
const turnedIntoString = /\.(?:to_string|to_owned|into)\(\)/y;
const name = /(?:new\s+)?[A-Za-z_][\w.]*(?:::\w+)*!?/y;

const words: Readonly<Record<string, Json>> = {
  true: true,
  false: false,
  nil: null,
  null: null,
  None: null,
  nullptr: null,
};
const nothing = /^(?:std::nullopt|Optional\.empty)$/;
const same = /^(?:String(?:::from)?|(?:std::)?string|Some|Optional\.of|(?:std::)?(?:make_)?optional|Box::new)$/;
const listing = /^(?:(?:std::)?(?:vector|list|deque|initializer_list)|ArrayList|LinkedList|Vec::new|Vec::from)$/;
const items = /^(?:Arrays\.asList|List\.of|vec!|(?:std::)?(?:make_tuple|make_pair|tuple|pair)|Pair(?:\.with|\.of)?)$/;
const mapping = /^(?:(?:std::)?(?:unordered_)?map|HashMap(?:::from|::new)?|BTreeMap(?:::from|::new)?|TreeMap)$/;

/** The value of a typed literal, or undefined. Never throws. */
export const readTypedLiteral = (source: string): Json | undefined => new TypedReader(source).whole();

class TypedReader extends Reader {
  protected read(first: string | undefined): Json {
    if (this.next("&")) return this.value();
    if (first === '"' || first === "'") return this.string();
    if (this.take(goType)) return this.braces();
    if (first === "[") return this.sequence("]");
    if (first === "{") return this.braces();
    if (first === "(") {
      if (this.take(cast)) return this.value();
      const all = this.sequence(")");
      return all.length === 1 ? all[0]! : all;
    }
    const number = this.take(numeral);
    if (number) return this.plain(number[1]!.replaceAll("_", ""));
    const [word] = this.take(name) ?? [];
    if (word === undefined) throw new Refused();
    if (Object.hasOwn(words, word)) return words[word]!;
    return this.made(word.replace(/^new\s+/, ""));
  }

  /** What a constructor makes of its arguments. */
  made(word: string): Json {
    if (this.text.startsWith("::<", this.position)) this.position += 2;
    this.generics();
    const path = this.text.startsWith("::", this.position) ? `${word}${this.take(/::\w+/y)?.[0]}` : word;
    if (nothing.test(path) && this.text[this.position] !== "(") return null;
    const open = this.text[this.position];
    if (open !== "(" && open !== "[" && open !== "{") throw new Refused();
    const args = open === "{" ? [this.braces()] : this.sequence(open === "(" ? ")" : "]");
    if (nothing.test(path)) return null;
    if (items.test(path)) return open === "{" ? args[0]! : args;
    if (path === "Map.of")
      return objectOf(args.flatMap((key, index) => (index % 2 === 0 ? [[key, args[index + 1] ?? null]] : [])));
    if (args.length > 1) throw new Refused();
    const [only] = args;
    if (same.test(path) && only !== undefined) return only;
    if (listing.test(path) && (only === undefined || Array.isArray(only))) return only ?? [];
    if (!mapping.test(path)) throw new Refused();
    return only instanceof Map ? only : objectOf((only ?? []) as Json[]);
  }

  /** A list, or an object where its items have keys. */
  braces(): Json {
    const all: Json[] = [];
    const entries: Json[] = [];
    this.items("}", () => {
      const key = this.take(/\s*(?:\[\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\d+)\s*\]|([A-Za-z_]\w*))\s*=(?!=)/y);
      if (key) entries.push([key[2] ?? this.plain(key[1]!), this.value()]);
      else {
        const value = this.value();
        if (this.next(":")) entries.push([value, this.value()]);
        else all.push(value);
      }
    });
    if (entries.length > 0 && all.length > 0) throw new Refused();
    return entries.length > 0 ? objectOf(entries) : all;
  }

  sequence(close: string): Json[] {
    const all: Json[] = [];
    this.items(close, () => all.push(this.value()));
    return all;
  }

  string(): Json {
    const [quoted] = this.take(text) ?? [];
    if (quoted === undefined) throw new Refused();
    this.take(turnedIntoString);
    return this.plain(quoted);
  }

  /** Type arguments, which say nothing that is needed. */
  generics(): void {
    if (this.text[this.position] !== "<") return;
    for (let depth = 0; this.position < this.text.length; ) {
      const character = this.text[this.position++];
      depth += character === "<" ? 1 : character === ">" ? -1 : 0;
      if (depth === 0) return;
    }
    throw new Refused();
  }

  plain(literal: string): Json {
    const value = readPythonLiteral(literal);
    if (value === undefined) throw new Refused();
    return value;
  }
}

function objectOf(pairs: readonly Json[]): JsonObject {
  return new Map(
    pairs.map((pair) => {
      const [key, value, ...more] = Array.isArray(pair) ? pair : [];
      const isKey = typeof key === "string" || key instanceof JsonNumber;
      if (!isKey || value === undefined || more.length > 0) throw new Refused();
      return [typeof key === "string" ? key : key.text, value];
    }),
  );
}
