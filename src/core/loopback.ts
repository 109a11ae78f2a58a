// Keeps web pages out of servers on this machine: a page that the user visits can send requests to any address of it, and a name that it
// controls can be made to point here. Programs that call the API are not browsers; they send no Origin, and a Host that says where they mean to go.
import type { IncomingHttpHeaders } from "node:http";
import { isIPv6 } from "node:net";

/** Why a request is refused, or undefined. `host` is the address that the server listens on. */
export function refusalOf(headers: IncomingHttpHeaders, host: string): string | undefined {
  const asked = headers.host ?? "";
  if (headers.origin !== undefined && headers.origin !== `http://${asked}`)
    return `Requests from web pages are refused (Origin ${shown(headers.origin)}).`;
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none")
    return "Requests from web pages are refused (Sec-Fetch-Site).";
  // Only an address that leads nowhere else is safe from names that others control; elsewhere the token decides.
  if (isLoopback(host) && !isLoopback(nameOf(asked)) && nameOf(asked) !== host)
    return `This server is asked for by another name (Host ${shown(asked)}). Use 127.0.0.1 or localhost.`;
  return undefined;
}

/** Whether the body is announced as JSON. Web pages can send the other kinds without asking first. */
export function isJson(headers: IncomingHttpHeaders): boolean {
  const type = (headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase();
  return type === "application/json" || /^application\/[\w.-]+\+json$/.test(type);
}

/** 127.0.0.0/8, ::1 and localhost. */
export function isLoopback(name: string): boolean {
  return /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name) || name === "::1" || name.toLowerCase() === "localhost";
}

/** The name in a Host header, without port and brackets. */
function nameOf(host: string): string {
  const inBrackets = /^\[([^\]]*)\](?::\d+)?$/.exec(host)?.[1];
  if (inBrackets !== undefined) return isIPv6(inBrackets) ? inBrackets : "";
  return host.replace(/:\d+$/, "");
}

const shown = (text: string) => JSON.stringify(text.slice(0, 100));
