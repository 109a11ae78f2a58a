/** The program; undefined where the package for this machine is not installed. */
export function findEsbuild(): string | undefined;

/** What to type to have it. */
export declare const installEsbuild: string;
