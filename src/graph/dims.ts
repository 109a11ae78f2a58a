// Dimensions of tensors, known or named. A named dimension is bound by the shapes of the inputs a graph is run with; reshapes
// and concatenations make products and sums of them. An expression is kept as a string in canonical form ("2*batch*length+prefix"),
// so that two dimensions are the same exactly when they compare equal.

import { GraphError } from "./errors.ts";

/** A size, a name ("length"), or an expression over names ("batch*length"). */
export type Dim = number | string;
export type Shape = readonly Dim[];

/** What the names stand for in one run. */
export type Bindings = ReadonlyMap<string, number>;

/** The terms of a dimension: sorted names joined by "*" → coefficient; "" is the constant term. */
type Terms = Map<string, number>;

/** Graphs have few different dimensions, and ask for them often. */
function remembered<Argument extends readonly unknown[], Result>(
  compute: (...dims: Argument) => Result,
): (...dims: Argument) => Result {
  const known = new Map<string, Result>();
  return (...dims) => {
    const key = dims.join(" ");
    let result = known.get(key);
    if (result === undefined) {
      result = compute(...dims);
      known.set(key, result);
    }
    return result;
  };
}

const termsOf = remembered((dim: Dim): ReadonlyMap<string, number> => {
  if (typeof dim === "number") return new Map([["", dim]]);
  const terms: Terms = new Map();
  for (const term of dim.split("+")) {
    const factors = term.split("*");
    const coefficient = factors.filter((factor) => /^\d+$/.test(factor)).reduce((product, f) => product * Number(f), 1);
    const names = factors.filter((factor) => !/^\d+$/.test(factor)).sort();
    addTerm(terms, names.join("*"), coefficient);
  }
  return terms;
});

function addTerm(terms: Terms, names: string, coefficient: number): void {
  terms.set(names, (terms.get(names) ?? 0) + coefficient);
}

function dimOf(terms: Terms): Dim {
  const kept = [...terms].filter(([, coefficient]) => coefficient !== 0).sort(([a], [b]) => (a < b ? -1 : 1));
  if (kept.length === 0) return 0;
  if (kept.length === 1 && kept[0]![0] === "") return kept[0]![1];
  return kept
    .map(([names, coefficient]) =>
      names === "" ? String(coefficient) : coefficient === 1 ? names : `${coefficient}*${names}`,
    )
    .join("+");
}

/** True for a name by itself, which an input's shape can bind. */
export function isName(dim: Dim): dim is string {
  return typeof dim === "string" && !/[+*]/.test(dim);
}

export function addDims(a: Dim, b: Dim): Dim {
  return typeof a === "number" && typeof b === "number" ? a + b : addNamed(a, b);
}

const addNamed = remembered((a: Dim, b: Dim): Dim => {
  const sum: Terms = new Map(termsOf(a));
  for (const [names, coefficient] of termsOf(b)) addTerm(sum, names, coefficient);
  return dimOf(sum);
});

export function multiplyDims(a: Dim, b: Dim): Dim {
  return typeof a === "number" && typeof b === "number" ? a * b : multiplyNamed(a, b);
}

const multiplyNamed = remembered((a: Dim, b: Dim): Dim => {
  const product: Terms = new Map();
  for (const [namesA, coefficientA] of termsOf(a)) {
    for (const [namesB, coefficientB] of termsOf(b)) {
      const names = [...namesA.split("*"), ...namesB.split("*")].filter((name) => name !== "").sort();
      addTerm(product, names.join("*"), coefficientA * coefficientB);
    }
  }
  return dimOf(product);
});

/** The number of elements of a shape. */
export function sizeOf(shape: Shape): Dim {
  return shape.reduce<Dim>(multiplyDims, 1);
}

/** The names and the constants a dimension is made of, as a sum of products. */
export function sumOfProducts(dim: Dim): { coefficient: number; names: string[] }[] {
  return [...termsOf(dim)].map(([names, coefficient]) => ({
    coefficient,
    names: names === "" ? [] : names.split("*"),
  }));
}

export function evaluateDim(dim: Dim, bindings: Bindings): number {
  if (typeof dim === "number") return dim;
  const bound = bindings.get(dim);
  if (bound !== undefined) return bound;
  let total = 0;
  for (const { coefficient, names } of sumOfProducts(dim)) {
    let product = coefficient;
    for (const name of names) {
      const value = bindings.get(name);
      if (value === undefined) {
        throw new GraphError("graph/shape", `The dimension "${name}" belongs to no input of the graph.`);
      }
      product *= value;
    }
    total += product;
  }
  return total;
}

/** The shape two operands broadcast to, or undefined where they do not fit. */
export function broadcastShapes(a: Shape, b: Shape): Dim[] | undefined {
  const rank = Math.max(a.length, b.length);
  const result: Dim[] = [];
  for (let axis = 0; axis < rank; axis++) {
    const left = a[axis - rank + a.length] ?? 1;
    const right = b[axis - rank + b.length] ?? 1;
    if (left !== right && left !== 1 && right !== 1) return undefined;
    result.push(left === 1 ? right : left);
  }
  return result;
}

export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((dim, axis) => dim === b[axis]);
}
