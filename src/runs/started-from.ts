// Where a run began: with the weights of another one, if config.json says so.

/** One line for people; undefined for a fresh adapter. */
export function startedFrom(config: Readonly<Record<string, unknown>>): string | undefined {
  const { from, weights } = config as { from?: string; weights?: { from?: { run: string; checkpoint: string } } };
  const named = weights?.from;
  if (named && named.run !== "") return `checkpoint ${named.checkpoint} of ${named.run}`;
  return from === "" ? undefined : from;
}
