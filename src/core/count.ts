/** "1 step", "2 steps". */
export const countOf = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? "" : "s"}`;

/** "12.3%". */
export const percent = (share: number): string => `${(100 * share).toFixed(1)}%`;

/** "300 B", "1.2 GB". */
export function bytesOf(bytes: number): string {
  const units = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9 };
  const [unit, size] = Object.entries(units).findLast(([, size]) => bytes >= size) ?? (["B", 1] as const);
  return `${(bytes / size).toFixed(size > 1 ? 1 : 0)} ${unit}`;
}

/** "90 s", "30 min", "12 h", "3 d". */
export function spanOf(seconds: number): string {
  const units = { s: 1, min: 60, h: 3600, d: 86_400 };
  const [unit, size] = Object.entries(units).findLast(([, size]) => seconds >= 2 * size) ?? (["s", 1] as const);
  return `${Math.max(0, Math.round(seconds / size))} ${unit}`;
}

/** "1,234,567". The runtime's own formatter loads all languages for it, which takes as long as the rest of a report. */
export const thousands = (count: number): string => String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ",");
