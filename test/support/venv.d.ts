export type Venv =
  | {
      python: string;
    }
  | {
      missing: string;
    };
/**
 * The interpreter of an environment with these packages, or why it cannot be had (no Python, no registry). A half-made environment
 * is never used: it is built under another name and moved into place.
 */
export declare function venvWith(packages: readonly string[]): Venv;
/** The same without blocking the event loop: an installation takes minutes, in which a test worker has to answer its runner. */
export declare function openVenv(packages: readonly string[]): Promise<Venv>;
