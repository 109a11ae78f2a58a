// The offered model that is most like one that is not offered: the same family, then the same kind, then the nearest size.

/** The nearest of `offered`, or undefined where none is of a related family. */
export function nearestModel(wanted: string, offered: readonly string[]): string | undefined {
  const target = partsOf(wanted);
  let best: { name: string; score: number } | undefined;
  for (const name of offered) {
    const score = likeness(target, partsOf(name));
    if (score > (best?.score ?? 0)) best = { name, score };
  }
  return best?.name;
}

interface Parts {
  owner: string;
  /** What stands before the size: "qwen3", "gpt-oss". */
  family: string;
  /** What stands after it: "instruct", "2507". */
  kind: Set<string>;
  /** Billions of parameters, if the name says. */
  size: number | undefined;
}

function partsOf(model: string): Parts {
  const [owner, name] = model.includes("/")
    ? (model.toLowerCase().split("/", 2) as [string, string])
    : ["", model.toLowerCase()];
  const found = /(?:^|-)(\d+(?:\.\d+)?)b(?=-|:|$)/.exec(name);
  const words = (found ? name.slice(found.index + found[0].length) : "").split(/[-:]/).filter(Boolean);
  return {
    owner,
    family: found ? name.slice(0, found.index) : name,
    kind: new Set(words),
    size: found ? Number(found[1]) : undefined,
  };
}

/** More is nearer; 0 is unrelated. */
function likeness(a: Parts, b: Parts): number {
  const shared = sharedStart(a.family, b.family);
  if (shared < 0.6 * Math.min(a.family.length, b.family.length)) return 0;
  const family = shared / Math.max(a.family.length, b.family.length);
  const sameKind =
    [...a.kind].filter((word) => b.kind.has(word)).length - [...b.kind].filter((word) => !a.kind.has(word)).length;
  const distance = a.size !== undefined && b.size !== undefined ? Math.abs(Math.log2(a.size / b.size)) : 3;
  return 100 * family + 4 * sameKind - 2 * distance + (a.owner === b.owner ? 1 : 0);
}

/** How long the common beginning of two words is. */
function sharedStart(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}
