"""Translates reference solutions of the starter set into JavaScript: JSON lines in, JSON lines out with `solutions` replaced. It knows the part of
Python that these are written in, and fails on anything else. Whole numbers are BigInt, as Python's have no limit."""

import ast
import json
import sys

RUNTIME = r"""
const it = (x) => (x instanceof Map ? [...x.keys()] : [...x]);
const big = (x) => (Array.isArray(x) ? x.map(big) : typeof x === "number" ? BigInt(x) : x && typeof x === "object" ? new Map(Object.entries(x).map(([k, v]) => [k, big(v)])) : x);
const num = (x) => (x === true ? 1n : x === false ? 0n : x);
const str = (x) => (x === true ? "True" : x === false ? "False" : String(x));
const len = (x) => BigInt(x.size ?? it(x).length);
const sum = (x) => it(x).reduce((a, b) => a + num(b), 0n);
const cmp = (a, b) => { if (Array.isArray(a)) { for (let i = 0; i < a.length && i < b.length; i++) { const c = cmp(a[i], b[i]); if (c) return c; } return a.length - b.length; } return a < b ? -1 : a > b ? 1 : 0; };
const eq = (a, b) => (Array.isArray(a) ? Array.isArray(b) && cmp(a, b) === 0 : num(a) === num(b));
const best = (sign) => (...args) => { let options = {}; if (typeof args.at(-1) === "object" && args.at(-1)?.options) options = args.pop(); const all = args.length > 1 ? args : it(args[0]); if (all.length === 0) { if ("default" in options) return options.default; throw new Error("empty"); } const key = options.key ?? ((x) => x); return all.reduce((a, b) => (sign * cmp(key(b), key(a)) > 0 ? b : a)); };
const max = best(1), min = best(-1);
const sorted = (x, { key = (y) => y, reverse = false } = {}) => it(x).sort((a, b) => (reverse ? cmp(key(b), key(a)) : cmp(key(a), key(b))));
const range = (...a) => { const [from, to, by] = a.length === 1 ? [0n, a[0], 1n] : [a[0], a[1], a[2] ?? 1n]; const all = []; for (let i = from; by > 0n ? i < to : i > to; i += by) all.push(i); return all; };
const map = (f, x) => it(x).map((y) => f(y));
const zip = (...all) => { const lists = all.map(it); return lists[0].slice(0, Math.min(...lists.map((l) => l.length))).map((_, i) => lists.map((l) => l[i])); };
const enumerate = (x, start = 0n) => it(x).map((y, i) => [BigInt(i) + start, y]);
const all = (x) => it(x).every((y) => y !== false && y !== 0n);
const list = (x) => it(x);
const set = (x) => new Set(x);
const int = (x, base) => BigInt(typeof x === "string" ? (base === 2n ? "0b" : "") + x.trim().replace(/^\+/, "") : num(x));
const abs = (x) => (x < 0n ? -x : x);
const bin = (x) => (x < 0n ? "-" : "") + "0b" + abs(x).toString(2);
const ord = (x) => BigInt(x.codePointAt(0));
const chr = (x) => String.fromCodePoint(Number(x));
const fdiv = (a, b) => { const q = a / b; return a % b !== 0n && (a < 0n) !== (b < 0n) ? q - 1n : q; };
const mod = (a, b) => ((a % b) + b) % b;
const add = (a, b) => (Array.isArray(a) ? a.concat(b) : typeof a === "string" ? a + b : num(a) + num(b));
const mul = (a, b) => (Array.isArray(a) ? range(b).flatMap(() => a) : typeof a === "string" ? a.repeat(Number(b)) : num(a) * num(b));
const has = (x, y) => (typeof x === "string" ? x.includes(y) : x instanceof Set || x instanceof Map ? x.has(y) : it(x).some((z) => eq(z, y)));
const at = (x, i) => (x instanceof Map ? x.get(i) : x.at(Number(i)));
const slice = (x, from, to, by) => { const s = it(x), n = s.length, step = Number(by ?? 1n); const fix = (v, low, high) => Math.max(low, Math.min(high, Number(v) < 0 ? Number(v) + n : Number(v))); const out = []; if (step > 0) for (let i = from === null ? 0 : fix(from, 0, n); i < (to === null ? n : fix(to, 0, n)); i += step) out.push(s[i]); else for (let i = from === null ? n - 1 : fix(from, -1, n - 1); i > (to === null ? -1 : fix(to, -1, n - 1)); i += step) out.push(s[i]); return typeof x === "string" ? out.join("") : out; };
const methods = {
  split: (s, by) => (by === undefined ? s.split(/\s+/).filter((w) => w !== "") : s.split(by)),
  join: (s, x) => it(x).join(s), fromkeys: (_, x) => new Map(it(x).map((k) => [k, null])), replace: (s, a, b) => s.replaceAll(a, () => b),
  count: (s, x) => BigInt(typeof s === "string" ? s.split(x).length - 1 : s.filter((y) => eq(y, x)).length), lower: (s) => s.toLowerCase(), upper: (s) => s.toUpperCase(),
  index: (s, x) => { const i = typeof s === "string" ? s.indexOf(x) : s.findIndex((y) => eq(y, x)); if (i < 0) throw new Error("not there"); return BigInt(i); },
  isdigit: (s) => /^\d+$/.test(s), isalpha: (s) => /^[A-Za-z]+$/.test(s), isupper: (s) => /[A-Z]/.test(s) && !/[a-z]/.test(s),
  capitalize: (s) => s.slice(0, 1).toUpperCase() + s.slice(1).toLowerCase(), swapcase: (s) => [...s].map((c) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase())).join(""),
};
let lines;
const input = () => { lines ??= require("fs").readFileSync(0, "utf8").split("\n"); return lines.shift(); };
const print = (...a) => console.log(a.map(str).join(" "));
const dict = null;
"""

COMPARE = {ast.Lt: "< 0", ast.LtE: "<= 0", ast.Gt: "> 0", ast.GtE: ">= 0"}


def expression(x):
    e = expression
    if isinstance(x, ast.Constant):
        return str(x.value) + "n" if isinstance(x.value, int) and not isinstance(x.value, bool) else "null" if x.value is None else json.dumps(x.value)
    if isinstance(x, ast.Name):
        return "own_" + x.id if x.id in ("f", "list_", "process") or len(x.id) == 1 else x.id
    if isinstance(x, ast.Starred):
        return "...it(%s)" % e(x.value)
    if isinstance(x, (ast.Tuple, ast.List)):
        return "[%s]" % ", ".join(map(e, x.elts))
    if isinstance(x, ast.UnaryOp):
        return "(-%s)" % e(x.operand) if isinstance(x.op, ast.USub) else "(!%s)" % e(x.operand)
    if isinstance(x, ast.BinOp):
        a, b = e(x.left), e(x.right)
        named = {ast.Add: "add", ast.Mult: "mul", ast.Mod: "mod", ast.FloorDiv: "fdiv"}.get(type(x.op))
        if named:
            return "%s(%s, %s)" % (named, a, b)
        return "(%s %s %s)" % (a, {ast.Sub: "-", ast.Pow: "**"}[type(x.op)], b)
    if isinstance(x, ast.BoolOp):
        return "(%s)" % (" && " if isinstance(x.op, ast.And) else " || ").join(map(e, x.values))
    if isinstance(x, ast.Compare):
        parts, left = [], x.left
        for op, right in zip(x.ops, x.comparators):
            a, b = e(left), e(right)
            parts.append(
                "eq(%s, %s)" % (a, b) if isinstance(op, ast.Eq)
                else "has(%s, %s)" % (b, a) if isinstance(op, ast.In)
                else "!has(%s, %s)" % (b, a) if isinstance(op, ast.NotIn)
                else "cmp(%s, %s) %s" % (a, b, COMPARE[type(op)])
            )
            left = right
        return "(%s)" % " && ".join(parts)
    if isinstance(x, ast.IfExp):
        return "(%s ? %s : %s)" % (e(x.test), e(x.body), e(x.orelse))
    if isinstance(x, ast.Lambda):
        return "((%s) => %s)" % (", ".join(e(ast.Name(a.arg)) for a in x.args.args), e(x.body))
    if isinstance(x, (ast.ListComp, ast.GeneratorExp)):
        inner = "[%s]" % e(x.elt)
        for part in reversed(x.generators):
            for test in part.ifs:
                inner = "(%s ? %s : [])" % (e(test), inner)
            inner = "it(%s).flatMap((%s) => %s)" % (e(part.iter), e(part.target), inner)
        return inner
    if isinstance(x, ast.Subscript):
        s = x.slice
        if isinstance(s, ast.Slice):
            return "slice(%s, %s)" % (e(x.value), ", ".join("null" if part is None else e(part) for part in (s.lower, s.upper, s.step)))
        return "at(%s, %s)" % (e(x.value), e(s))
    if isinstance(x, ast.Call):
        args = [e(a) for a in x.args]
        if x.keywords:
            args.append("{ options: true, %s }" % ", ".join("%s: %s" % (k.arg, e(k.value)) for k in x.keywords))
        if isinstance(x.func, ast.Attribute):
            return "methods.%s(%s)" % (x.func.attr, ", ".join([e(x.func.value)] + args))
        return "%s(%s)" % (e(x.func), ", ".join(args))
    raise ValueError(ast.dump(x))


def statement(x, target, names):
    if isinstance(x, ast.FunctionDef):
        own = set()
        name = expression(ast.Name(x.name)) if x.name != target else x.name
        parameters = [expression(ast.Name(a.arg)) for a in x.args.args]
        head = ["let %s = %s;" % (p, "big(given[%d])" % i if x.name == target else "given[%d]" % i) for i, p in enumerate(parameters)]
        own.update(parameters)
        return "function %s(...given) {\n%s\n}" % (name, "\n".join(head + [statement(s, target, own) for s in x.body]))
    if isinstance(x, ast.Return):
        return "return %s;" % expression(x.value)
    if isinstance(x, ast.Expr):
        return expression(x.value) + ";"
    if isinstance(x, ast.Assign):
        to = x.targets[0]
        new = [n.id for n in ast.walk(to) if isinstance(n, ast.Name)]
        fresh = [n for n in (expression(ast.Name(n)) for n in new) if n not in names]
        names.update(fresh)
        return "%s%s = %s;" % ("let %s;\n" % ", ".join(fresh) if fresh else "", expression(to), expression(x.value))
    raise ValueError(ast.dump(x))


def translate(source, target):
    names = set()
    return RUNTIME + "\n".join(statement(s, target, names) for s in ast.parse(source).body)


for line in sys.stdin:
    row = json.loads(line)
    target = (row.get("metadata") or {}).get("func_name")
    row["solutions"] = [translate(s, target) for s in row["solutions"]]
    row["starter_code"] = ""
    print(json.dumps(row))
