/** "1 step", "2 steps". */
export const countOf = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? "" : "s"}`;

/** "12.3%". */
export const percent = (share: number): string => `${(100 * share).toFixed(1)}%`;

/** "1,234,567". The runtime's own formatter loads all languages for it, which takes as long as the rest of a report. */
export const thousands = (count: number): string => String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ",");
