// What goes into X-API-Key: the key itself, or a short-lived JWT that the server gives for it and that is renewed in time.
import { execFile } from "node:child_process";
import { CredentialError } from "./errors.ts";

/** Renewed this long before it expires, in the background; and before a request when less than `urgentMs` is left. */
const earlyMs = 300_000;
const urgentMs = 60_000;
const retryMs = 60_000;

export class Credentials {
  readonly #original: () => Promise<string>;
  #token: string;
  /** Unix milliseconds; Infinity for a plain key. */
  #expiresAt = Number.POSITIVE_INFINITY;
  #exchange: ((credential: string) => Promise<string>) | undefined;
  #renewing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  /** Called with every new token. */
  onChange: ((token: string) => void) | undefined;

  constructor(credential: string, command: string | undefined) {
    this.#token = credential;
    this.#original = async () => (this.useCommand && command !== undefined ? runCommand(command) : credential);
  }

  /** True: the credential command gives what is exchanged for a token. */
  useCommand = false;

  get token(): string {
    return this.#token;
  }

  /** From now on a token is used, which `exchange` gets for a credential. */
  async useTokens(exchange: (credential: string) => Promise<string>): Promise<void> {
    this.#exchange = exchange;
    await this.#renew();
  }

  /** The value for the next request. */
  async current(): Promise<string> {
    if (this.#expiresAt - Date.now() <= urgentMs) {
      try {
        await this.#renew();
      } catch {
        // The old token may still pass; if not, the server's 401 says so.
      }
    }
    return this.#token;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #renew(): Promise<void> {
    this.#renewing ??= this.#fetchToken().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #fetchToken(): Promise<void> {
    this.#token = await this.#exchange!(await this.#original());
    const { exp } = claimsOf(this.#token);
    this.#expiresAt = typeof exp === "number" ? exp * 1000 : Number.POSITIVE_INFINITY;
    this.onChange?.(this.#token);
    this.#schedule(this.#expiresAt - Date.now() - earlyMs);
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer);
    if (this.#closed || !Number.isFinite(delayMs)) return;
    // A timer longer than 2^31 ms would fire at once.
    this.#timer = setTimeout(
      () => {
        this.#renew().catch(() => this.#schedule(retryMs));
      },
      Math.min(Math.max(delayMs, 1000), 2 ** 31 - 1),
    ).unref();
  }
}

/** The unverified claims of a JWT; empty when it is none. */
export function claimsOf(token: string): Record<string, unknown> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    return typeof claims === "object" && claims !== null ? (claims as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function runCommand(command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile("/bin/sh", ["-c", command], { timeout: 60_000 }, (error, stdout) => {
      const credential = stdout.trim();
      if (!error && credential !== "") resolve(credential);
      else
        reject(
          new CredentialError(
            "client/credential-command",
            `TINKER_CREDENTIAL_CMD ${error ? `failed (${error.code ?? error.signal ?? "no exit code"})` : "printed nothing"}. Run it in a shell: it must print a credential.`,
          ),
        );
    });
  });
}
