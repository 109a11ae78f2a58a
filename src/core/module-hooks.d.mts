export function register(entries: Readonly<Record<string, string>>): void;
