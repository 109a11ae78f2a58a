// A real HTTP proxy on loopback: tunnels by CONNECT, whole requests for http addresses. It finds the hosts that tests make up at ports of
// this machine, and may want a user and password.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";

export interface HttpProxy {
  port: number;
  /** "CONNECT host:port" and "POST http://host/path", as they came. */
  seen: string[];
  /** What a request is answered with before anything else, e.g. 403. */
  refuse: number | undefined;
  close(): Promise<void>;
}

/** `hosts`: the port that stands behind each name. `login`: "user:password" that it wants. */
export async function startProxy(hosts: Readonly<Record<string, number>>, login?: string): Promise<HttpProxy> {
  const sockets = new Set<Socket>();
  const proxy: HttpProxy = { port: 0, seen: [], refuse: undefined, close };
  const wanted = login === undefined ? undefined : `Basic ${Buffer.from(login).toString("base64")}`;
  const refusal = ({ headers }: IncomingMessage, host: string): number | undefined =>
    proxy.refuse ??
    (wanted !== undefined && headers["proxy-authorization"] !== wanted ? 407 : hosts[host] ? undefined : 502);

  const server = createServer((incoming: IncomingMessage, outgoing: ServerResponse) => {
    proxy.seen.push(`${incoming.method} ${incoming.url}`);
    const url = new URL(incoming.url!, "http://not-absolute");
    const refused = refusal(incoming, url.hostname);
    if (refused !== undefined) return void outgoing.writeHead(refused, { "content-length": 0 }).end();
    const { "proxy-authorization": _, ...headers } = incoming.headers;
    const port = hosts[url.hostname]!;
    const path = url.pathname + url.search;
    // Our servers on loopback answer to its names alone.
    headers.host = `127.0.0.1:${port}`;
    const forwarded = request({ host: "127.0.0.1", port, path, method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on("error", () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  server.on("connect", (incoming: IncomingMessage, client: Socket, head: Buffer) => {
    proxy.seen.push(`CONNECT ${incoming.url}`);
    const host = incoming.url!.replace(/:\d+$/, "");
    const refused = refusal(incoming, host);
    client.on("error", () => {});
    if (refused !== undefined) return void client.end(`HTTP/1.1 ${refused} No\r\nContent-Length: 0\r\n\r\n`);
    const way = connect(hosts[host]!, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      way.write(head);
      way.pipe(client).pipe(way);
    });
    sockets.add(way);
    way.on("error", () => client.destroy());
    client.on("close", () => way.destroy());
  });
  server.on("connection", (socket: Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  proxy.port = (server.address() as AddressInfo).port;
  return proxy;

  async function close(): Promise<void> {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

/** A TLS server for `host` before an http one at `port`; `ca`: the file that NODE_EXTRA_CA_CERTS needs. */
export async function startTls(host: string, port: number, folder: string) {
  const [key, ca] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const words = `req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=${host} -addext subjectAltName=DNS:${host} -keyout ${key} -out ${ca}`;
  execFileSync("openssl", words.split(" "), { stdio: "ignore" });
  const server = createSecureServer({ key: readFileSync(key), cert: readFileSync(ca) }, (incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    const forwarded = request({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on("error", () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    ca,
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
