// What is another about a list of tools, in words.
import { isDeepStrictEqual } from "node:util";
import type { ToolDeclaration } from "../renderers/index.ts";

/** By the tools' names; undefined where nothing is. */
export function toolChanges(before: readonly ToolDeclaration[], now: readonly ToolDeclaration[]): string | undefined {
  if (before === now || isDeepStrictEqual(before, now)) return undefined;
  const [old, present] = [byName(before), byName(now)];
  const names = (tools: ReadonlyMap<string, unknown>, keep: (name: string) => boolean, what: string) => {
    const kept = [...tools.keys()].filter(keep);
    return kept.length > 0 ? [`${kept.join(", ")} ${what}`] : [];
  };
  const parts = [
    ...names(present, (name) => !old.has(name), "added"),
    ...names(old, (name) => !present.has(name), "removed"),
    ...names(present, (name) => old.has(name) && !isDeepStrictEqual(old.get(name), present.get(name)), "changed"),
  ];
  return parts.length > 0 ? parts.join("; ") : "in another order";
}

const byName = (tools: readonly ToolDeclaration[]) => new Map(tools.map((tool) => [nameOf(tool), tool]));

function nameOf(tool: ToolDeclaration): string {
  const declared = (typeof tool === "string" ? JSON.parse(tool) : tool) as { function?: unknown };
  const { name } = (declared.function ?? declared) as { name?: unknown };
  return String(name);
}
