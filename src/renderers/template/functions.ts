// Python's operators, string methods and filters for the rewritten template. Texts are compared by what they say, whoever wrote them,
// and cut without changing who did.
import { escapeMark } from "./control-text.ts";
import { pythonEquals, pythonJson, pythonText, splitBlanks, strip } from "./python.ts";
import {
  isArray,
  isFloat,
  isKeywords,
  isNull,
  isNumeric,
  isObject,
  isString,
  isUndefined,
  makeArray,
  makeBoolean,
  makeNumber,
  makeString,
  type Value,
} from "./runtime-values.ts";

type Unmark = (text: string) => string;
type Table = Readonly<Record<string, (unmark: Unmark, ...args: Value[]) => Value>>;

const operators: Table = {
  "+": (_, a, b) => {
    if (isString(a!) && isString(b!)) return makeString(a.value + b.value);
    if (isArray(a!) && isArray(b!)) return makeArray([...a.value, ...b.value]);
    if (isNumeric(a!) && isNumeric(b!)) return makeNumber(Number(a.value) + Number(b.value), isFloat(a) || isFloat(b));
    throw new Error(`unsupported operand types for +: ${a!.type} and ${b!.type}`);
  },
  "~": (_, a, b) => makeString(pythonText(a!) + pythonText(b!)),
  "==": (unmark, a, b) => makeBoolean(pythonEquals(a!, b!, unmark)),
  "!=": (unmark, a, b) => makeBoolean(!pythonEquals(a!, b!, unmark)),
  in: (unmark, a, b) => makeBoolean(contains(a!, b!, unmark)),
  "not in": (unmark, a, b) => makeBoolean(!contains(a!, b!, unmark)),
  not: (_, a) => makeBoolean(!a!.__bool__().value),
};

function contains(item: Value, whole: Value, unmark: Unmark): boolean {
  if (isUndefined(whole)) return false;
  if (isArray(whole)) return whole.value.some((each) => pythonEquals(each, item, unmark));
  if (isString(whole) && isString(item)) return unmark(whole.value).includes(unmark(item.value));
  if (isObject(whole)) return isString(item) && whole.value.has(item.value);
  throw new Error(`argument of type ${whole.type} cannot contain ${item.type}`);
}

/** The pieces of a text between separators: from its start, cut at most `limit` times. */
function between(unmark: Unmark, whole: string, separator: string, limit = Number.POSITIVE_INFINITY): string[] {
  const [said, mark] = [unmark(whole), unmark(separator)];
  const pieces: string[] = [];
  let start = 0;
  for (let at = said.indexOf(mark); at >= 0 && pieces.length < limit; at = said.indexOf(mark, start)) {
    pieces.push(whole.slice(start, at));
    start = at + mark.length;
  }
  return [...pieces, whole.slice(start)];
}

/** The same from its end. What is not cut stays as it was written: putting it together again would make it the template's own. */
function betweenFromEnd(unmark: Unmark, whole: string, separator: string, limit = Number.POSITIVE_INFINITY): string[] {
  const [said, mark] = [unmark(whole), unmark(separator)];
  const pieces: string[] = [];
  let end = whole.length;
  while (pieces.length < limit && end >= mark.length) {
    const at = said.lastIndexOf(mark, end - mark.length);
    if (at < 0) break;
    pieces.unshift(whole.slice(at + mark.length, end));
    end = at;
  }
  return [whole.slice(0, end), ...pieces];
}

const text = (value: Value | undefined, what: string): string => {
  if (isString(value)) return value.value;
  throw new Error(`${what} needs text, not ${value?.type ?? "nothing"}`);
};

const stripper =
  (side: "both" | "left" | "right") =>
  (unmark: Unmark, self: Value, characters?: Value): Value =>
    makeString(strip(text(self, "strip()"), side, isString(characters) ? unmark(characters.value) : undefined));

/** The pieces of a text between separators, `limit` cuts at most, counted from one end. */
function cut(
  unmark: Unmark,
  self: Value,
  separator: Value | undefined,
  limit: Value | undefined,
  fromEnd: boolean,
): Value {
  const whole = text(self, "split()");
  const given = limit === undefined || isKeywords(limit) ? -1 : Number(limit.value);
  const cuts = given < 0 ? Number.POSITIVE_INFINITY : given;
  if (separator === undefined || isNull(separator)) {
    const words = splitBlanks(whole);
    if (words.length <= cuts) return makeArray(words.map(makeString));
    throw new Error("split() with a limit needs a separator");
  }
  const mark = text(separator, "split()");
  if (mark === "") throw new Error("empty separator");
  const pieces = fromEnd ? betweenFromEnd(unmark, whole, mark, cuts) : between(unmark, whole, mark, cuts);
  return makeArray(pieces.map(makeString));
}

const affix =
  (matches: (whole: string, part: string) => boolean) =>
  (unmark: Unmark, self: Value, affixes?: Value): Value => {
    const whole = unmark(text(self, "startswith()"));
    const parts = affixes !== undefined && isArray(affixes) ? affixes.value : [affixes];
    return makeBoolean(parts.some((part) => matches(whole, unmark(text(part, "startswith()")))));
  };

function replace(unmark: Unmark, self: Value, from?: Value, to?: Value, count?: Value): Value {
  const [whole, old, fresh] = [text(self, "replace()"), text(from, "replace()"), text(to, "replace()")];
  const given = isKeywords(count) ? count.value.get("count") : count;
  const left =
    given === undefined || isNull(given) || Number(given.value) < 0 ? Number.POSITIVE_INFINITY : Number(given.value);
  if (old === "")
    return makeString(left === Number.POSITIVE_INFINITY ? [...whole].map((c) => fresh + c).join("") + fresh : whole);
  return makeString(between(unmark, whole, old, left).join(fresh));
}

const methods: Table = {
  strip: stripper("both"),
  lstrip: stripper("left"),
  rstrip: stripper("right"),
  split: (unmark, self, separator, limit) => cut(unmark, self!, separator, limit, false),
  rsplit: (unmark, self, separator, limit) => cut(unmark, self!, separator, limit, true),
  startswith: affix((whole, part) => whole.startsWith(part)),
  endswith: affix((whole, part) => whole.endsWith(part)),
  replace: (unmark, self, ...args) => replace(unmark, self!, ...args),
  removeprefix: (unmark, self, part) => {
    const [whole, prefix] = [text(self, "removeprefix()"), text(part, "removeprefix()")];
    return makeString(unmark(whole).startsWith(unmark(prefix)) ? whole.slice(prefix.length) : whole);
  },
  removesuffix: (unmark, self, part) => {
    const [whole, suffix] = [text(self, "removesuffix()"), text(part, "removesuffix()")];
    return makeString(suffix !== "" && unmark(whole).endsWith(unmark(suffix)) ? whole.slice(0, -suffix.length) : whole);
  },
  find: (unmark, self, part) => {
    const whole = text(self, "find()");
    const at = unmark(whole).indexOf(unmark(text(part, "find()")));
    return makeNumber(at < 0 ? -1 : lengthOf(makeString(whole.slice(0, at))), false);
  },
  capitalize: (_, self) => makeString(capitalize(text(self, "capitalize()"))),
  join: (_, self, items) => {
    if (items === undefined || !isArray(items)) throw new Error("join() needs a list");
    return makeString(items.value.map((item) => text(item, "join()")).join(text(self, "join()")));
  },
};

const capitalize = (word: string) => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase();

/** len(): text has the length of its code points, escapes not counted, and nothing has none. */
function lengthOf(value: Value): number {
  if (isUndefined(value)) return 0;
  if (isString(value)) return Array.from(value.value).filter((character) => character !== escapeMark).length;
  if (isArray(value)) return value.value.length;
  if (isObject(value)) return value.value.size;
  throw new Error(`object of type ${value.type} has no len()`);
}

function compareCodes(a: readonly number[], b: readonly number[]): number {
  const differs = a.findIndex((code, index) => code !== b[index]);
  return differs < 0 ? a.length - b.length : a[differs]! - (b[differs] ?? -1);
}

const filters: Table = {
  trim: (unmark, value, characters) =>
    makeString(strip(pythonText(value!), "both", isString(characters) ? unmark(characters.value) : undefined)),
  string: (_, value) => makeString(pythonText(value!)),
  upper: (_, value) => makeString(pythonText(value!).toUpperCase()),
  lower: (_, value) => makeString(pythonText(value!).toLowerCase()),
  capitalize: (_, value) => makeString(capitalize(pythonText(value!))),
  replace: (unmark, value, ...args) => replace(unmark, makeString(pythonText(value!)), ...args),
  length: (_, value) => makeNumber(lengthOf(value!), false),
  count: (_, value) => makeNumber(lengthOf(value!), false),
  dictsort: (unmark, value, ...args) => {
    if (!isObject(value!)) throw new Error(`dictsort needs an object, not ${value!.type}`);
    const keywords = args.find((argument) => isKeywords(argument))?.value;
    const given = args.filter((argument) => !isKeywords(argument));
    const caseSensitive = (given[0] ?? keywords?.get("case_sensitive"))?.__bool__().value ?? false;
    const byValue = text(given[1] ?? keywords?.get("by") ?? makeString("key"), "dictsort") === "value";
    const reverse = (given[2] ?? keywords?.get("reverse"))?.__bool__().value ?? false;
    const rank = ([key, item]: [string, Value]) => {
      const by = unmark(byValue ? text(item, "dictsort by value") : key);
      // By code points, as Python orders text.
      return Array.from(caseSensitive ? by : by.toLowerCase(), (character) => character.codePointAt(0)!);
    };
    const ranked = [...value.value].map((entry) => ({ entry, rank: rank(entry) }));
    ranked.sort((a, b) => (reverse ? -1 : 1) * compareCodes(a.rank, b.rank));
    return makeArray(ranked.map(({ entry: [key, item] }) => makeArray([makeString(key), item])));
  },
  tojson: (_, value, ...args) => {
    const keywords = args.find((argument) => isKeywords(argument))?.value;
    const indent = keywords?.get("indent");
    const separators = keywords?.get("separators");
    return makeString(
      pythonJson(value!, {
        indent: indent === undefined || isNull(indent) ? undefined : (indent.value as number | string),
        separators:
          separators !== undefined && isArray(separators)
            ? [pythonText(separators.value[0]!), pythonText(separators.value[1]!)]
            : undefined,
        sortKeys: keywords?.get("sort_keys")?.__bool__().value ?? false,
        ensureAscii: keywords?.get("ensure_ascii")?.__bool__().value ?? false,
      }),
    );
  },
};

/** What the rewritten template calls in place of the interpreter's own. */
export const functions = { operator: operators, method: methods, filter: filters };
