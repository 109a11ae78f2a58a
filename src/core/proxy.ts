// Requests to servers elsewhere, through the proxy that the environment names: HTTPS_PROXY and HTTP_PROXY by the address's scheme, else
// ALL_PROXY, but for what NO_PROXY lists; in lower case too. Node's own fetch and undici's pools do not look at any of them by themselves.
// A proxy is asked for a tunnel (CONNECT) to an https address, and is sent the whole request for an http one, as curl does: many proxies
// make tunnels to port 443 alone. Its user and password go to the proxy and nowhere else: no message, log or file holds them.
import { request } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Dispatcher, Pool } from "undici";
import { WhetstoneError } from "./errors.ts";
import { isLoopback } from "./loopback.ts";

/** The proxy refused, or cannot be used as it is named. */
export class ProxyError extends WhetstoneError {}

export interface ProxyAddress {
  /** Without user and password. */
  origin: string;
  /** The variable that names it, for messages. */
  variable: string;
  /** For its Proxy-Authorization header. */
  authorization: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The proxy that requests to an address go through, if any. */
export function proxyFor(address: string | URL, environment: Environment = process.env): ProxyAddress | undefined {
  const url = new URL(address);
  const kind = url.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const [variable, value] = given(environment, kind) ?? given(environment, "ALL_PROXY") ?? [];
  if (variable === undefined || value === undefined || isExempt(url, given(environment, "NO_PROXY")?.[1]))
    return undefined;
  return parseProxy(variable, value);
}

/** A variable as people set it: in lower case first, as curl looks for it. */
function given(environment: Environment, name: string): [string, string] | undefined {
  for (const variable of [name.toLowerCase(), name]) {
    const value = environment[variable]?.trim();
    if (value) return [variable, value];
  }
  return undefined;
}

function parseProxy(variable: string, value: string): ProxyAddress {
  const text = /^[a-z][a-z\d+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol))
    throw new ProxyError(
      "network/proxy-address",
      // Never the value: it may hold a password.
      `${variable} is no address of an HTTP proxy${url ? ` (${url.protocol}//…)` : ""}. Write it as http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT; unset it to use none.`,
    );
  const user = `${decoded(url.username)}:${decoded(url.password)}`;
  return {
    origin: url.origin,
    variable,
    authorization: user === ":" ? undefined : `Basic ${Buffer.from(user).toString("base64")}`,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Whether NO_PROXY lists an address: `*`; a name, which means its subdomains too, with or without a dot before it; either with a port. This
 * machine is listed by itself, unless `<-loopback>` stands there, as browsers write it.
 */
function isExempt(url: URL, list = ""): boolean {
  const entries = list.split(/[\s,]+/).filter(Boolean);
  const host = bare(url.hostname);
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  if (isLoopback(host) && !entries.includes("<-loopback>")) return true;
  return entries.some((entry) => {
    if (entry === "*") return true;
    const [, name = "", wantedPort] = /^(\[[^\]]*\]|[^:]*|[^[\]]*:[^[\]]*:.*?)(?::(\d+))?$/.exec(entry) ?? [];
    if (wantedPort !== undefined && wantedPort !== port) return false;
    const wanted = bare(name).replace(/^\*?\./, "");
    return wanted !== "" && (host === wanted || host.endsWith(`.${wanted}`));
  });
}

const bare = (name: string) =>
  name
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "");

/** A pool of connections to an origin, through its proxy where it has one. */
export function poolTo(origin: string, options: Pool.Options = {}, environment?: Environment): Pool {
  const proxy = proxyFor(origin, environment);
  if (!proxy) return new Pool(origin, options);
  const timeoutMs = typeof options.connect === "object" ? (options.connect?.timeout ?? undefined) : undefined;
  const open = (connecting: (timeoutMs: number) => Promise<Socket>): NonNullable<Pool.Options["connect"]> => {
    return (_, callback) => {
      connecting(timeoutMs ?? connectTimeoutMs).then(
        (socket) => callback(null, socket),
        (error: Error) => callback(error, null),
      );
    };
  };
  return origin.startsWith("http:")
    ? new ForwardingPool(origin, proxy, { ...options, connect: open((limitMs) => connectTo(proxy, limitMs)) })
    : new Pool(origin, { ...options, connect: open((limitMs) => openTunnel(proxy, new URL(origin), limitMs)) });
}

/** `fetch`, through the proxy of each address on the way: a redirect may lead to a host that has none. */
export async function fetchFrom(url: string | URL, init: RequestInit = {}): Promise<Response> {
  try {
    const response = await fetch(url, { ...init, dispatcher: byOrigin } as unknown as RequestInit);
    refuseLogin(response.url || url, response.status);
    return response;
  } catch (error) {
    // fetch says only that it failed.
    throw error instanceof TypeError && error.cause instanceof ProxyError ? error.cause : error;
  }
}

/** Throws where an answer is a proxy's that wants a user and password. */
export function refuseLogin(address: string | URL, status: number): void {
  const proxy = status === 407 ? proxyFor(address) : undefined;
  if (proxy) throw refusal(proxy, status, new URL(address).host);
}

const fetchPools = new Map<string, Pool>();
/** All that fetch wants of a dispatcher. */
const byOrigin = {
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const origin = String(options.origin);
    const proxy = proxyFor(origin);
    const key = `${origin} ${proxy?.origin} ${proxy?.authorization}`;
    const pool = fetchPools.get(key) ?? poolTo(origin);
    fetchPools.set(key, pool);
    return pool.dispatch(options, handler);
  },
};

/** Sends whole requests to the proxy, each with the address that it is for. */
class ForwardingPool extends Pool {
  readonly #origin: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(origin: string, proxy: ProxyAddress, options: Pool.Options) {
    super(origin, options);
    this.#origin = origin;
    this.#headers = authorizationOf(proxy);
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const headers = Array.isArray(options.headers)
      ? [...options.headers, ...Object.entries(this.#headers).flat()]
      : { ...(options.headers as Record<string, string>), ...this.#headers };
    return super.dispatch({ ...options, path: this.#origin + options.path, headers }, handler);
  }
}

const connectTimeoutMs = 30_000;
const authorizationOf = ({ authorization }: ProxyAddress): Record<string, string> =>
  authorization === undefined ? {} : { "proxy-authorization": authorization };

/** A connection to the proxy. */
function connectTo(proxy: ProxyAddress, timeoutMs: number): Promise<Socket> {
  const { protocol, hostname, port } = new URL(proxy.origin);
  const host = hostname.replace(/^\[|\]$/g, "");
  const socket =
    protocol === "https:"
      ? connectTls({ host, port: Number(port || 443), servername: isIP(host) ? "" : host })
      : connect({ host, port: Number(port || 80) });
  return settled(socket, protocol === "https:" ? "secureConnect" : "connect", timeoutMs).catch((error: Error) => {
    throw unreachable(proxy, error);
  });
}

/** A connection to an https address, encrypted through the proxy. */
async function openTunnel(proxy: ProxyAddress, { hostname, port }: URL, timeoutMs: number): Promise<Socket> {
  const target = `${hostname}:${port || 443}`;
  const way = await connectTo(proxy, timeoutMs);
  const socket = await new Promise<Socket>((resolve, reject) => {
    const tunnel = request({
      createConnection: () => way,
      method: "CONNECT",
      path: target,
      headers: { host: target, ...authorizationOf(proxy) },
      timeout: timeoutMs,
    });
    const answered = (status = 0) => {
      if (status === 200) return resolve(way);
      way.destroy();
      reject(refusal(proxy, status, target));
    };
    tunnel.once("connect", ({ statusCode }) => answered(statusCode));
    // A proxy that knows no CONNECT answers as to any request.
    tunnel.once("response", ({ statusCode }) => answered(statusCode === 200 ? 405 : statusCode));
    tunnel.once("timeout", () => tunnel.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    tunnel.once("error", (error) => reject(unreachable(proxy, error)));
    tunnel.end();
  });
  socket.setTimeout(0);
  const host = hostname.replace(/^\[|\]$/g, "");
  return settled(
    connectTls({ socket, servername: isIP(host) ? "" : host, host, ALPNProtocols: ["http/1.1"] }),
    "secureConnect",
    timeoutMs,
  );
}

/** The socket once it is connected. */
function settled(socket: Socket, event: "connect" | "secureConnect", timeoutMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error(`no connection within ${timeoutMs} ms`)), timeoutMs);
    const end = (error?: Error) => {
      clearTimeout(timer);
      socket.off("error", end);
      if (error) reject(error);
      else resolve(socket);
    };
    socket.once("error", end);
    socket.once(event, () => end());
  });
}

/** What a proxy's refusal means. What may pass (5xx, 408, 429) is an ordinary failure to connect, which is tried again. */
function refusal({ origin, variable }: ProxyAddress, status: number, target: string): Error {
  if (status === 407)
    return new ProxyError(
      "network/proxy-login",
      `The proxy ${origin} (${variable}) wants a user and password, or others than it was given (407). Set ${variable}=http://USER:PASSWORD@HOST:PORT, with : / @ in them as %3A %2F %40.`,
    );
  if (status >= 500 || status === 408 || status === 429)
    return new Error(`the proxy ${origin} (${variable}) has no way to ${target}: ${status}`);
  return new ProxyError(
    "network/proxy-refused",
    `The proxy ${origin} (${variable}) refuses connections to ${target} (${status}). Ask whoever runs it to allow them, or list the host in NO_PROXY.`,
  );
}

const unreachable = ({ origin, variable }: ProxyAddress, cause: Error & { code?: string }): Error =>
  new Error(`the proxy ${origin} (${variable}) cannot be reached: ${cause.message || cause.code}`, { cause });
