// Who gets an answer: a browser that was given the link, on this machine, from the dashboard's own page. The link's first part is a secret;
// every address is below it, so that whoever does not know it gets nothing. It is no cookie: those are sent to every port of a host.
import type { IncomingMessage } from "node:http";
import { isJson, refusalOf } from "../core/loopback.ts";
import { isSecret } from "../core/own-server.ts";

export const host = "127.0.0.1";

/** Sent with every answer. Scripts, styles and connections of this address alone; texts of models could not load or run anything. */
export const safeHeaders: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  "cache-control": "no-store",
};

/** What a request asks for below the secret part of the link, or undefined: it gets nothing. */
export function admitted(
  request: IncomingMessage,
  token: string,
): { path: string; query: URLSearchParams } | undefined {
  const target = /^\/([^/?#]{1,200})(\/[^?#]*)?(?:\?([^#]*))?$/.exec(request.url ?? "");
  // Compared before anything else, and in the same time for every wrong one.
  const known = isSecret(target?.[1] ?? "", token);
  if (!target || !known || isRefused(request, target[2])) return undefined;
  return { path: target[2] ?? "", query: new URLSearchParams(target[3] ?? "") };
}

function isRefused(request: IncomingMessage, path: string | undefined): boolean {
  const { headers, method } = request;
  // A link that was clicked on another page (a terminal in a browser) opens the dashboard, and nothing else.
  const opens =
    method === "GET" &&
    (path === undefined || path === "/") &&
    headers["sec-fetch-mode"] === "navigate" &&
    headers["sec-fetch-dest"] === "document";
  const judged = opens ? { ...headers, "sec-fetch-site": "none" } : headers;
  if (refusalOf(judged, host) !== undefined) return true;
  // What acts on a run comes from the page itself, which always says so.
  return method !== "GET" && (headers.origin === undefined || !isJson(headers));
}
