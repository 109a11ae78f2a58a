import { expect, test } from "vitest";
import { ProxyError, proxyFor } from "./proxy.ts";

const of = (address: string, environment: Record<string, string>) => proxyFor(address, environment)?.origin;
const proxy = { HTTPS_PROXY: "http://secure:3128", HTTP_PROXY: "http://plain:3128" };

test.each([
  ["https://a.example", proxy, "http://secure:3128"],
  ["http://a.example", proxy, "http://plain:3128"],
  ["https://a.example", { https_proxy: "http://lower:1", ...proxy }, "http://lower:1"],
  ["https://a.example", { HTTPS_PROXY: " ", ALL_PROXY: "http://all:1" }, "http://all:1"],
  ["http://a.example", { HTTPS_PROXY: "http://secure:3128" }, undefined],
  ["https://a.example", { HTTPS_PROXY: "bare:3128" }, "http://bare:3128"],
  ["https://a.example", { HTTPS_PROXY: "https://tls" }, "https://tls"],
  ["https://a.example", {}, undefined],
  ["http://127.0.0.1:8000", proxy, undefined],
  ["http://localhost:8000", proxy, undefined],
  ["http://[::1]:8000", proxy, undefined],
  ["http://127.0.0.1:8000", { ...proxy, NO_PROXY: "<-loopback>" }, "http://plain:3128"],
] as const)("%s with %o goes through %s", (address, environment, wanted) => {
  expect(of(address, environment as Record<string, string>)).toBe(wanted);
});

test.each([
  ["*", "https://a.example", true],
  ["example", "https://a.example", true],
  [".example", "https://a.example", true],
  ["*.example", "https://a.example", true],
  ["A.EXAMPLE", "https://a.example", true],
  ["a.example", "https://b.a.example", true],
  ["a.example", "https://ba.example", false],
  ["b.a.example", "https://a.example", false],
  ["other, a.example", "https://a.example", true],
  ["a.example:443", "https://a.example", true],
  ["a.example:8443", "https://a.example", false],
  ["a.example:8443", "https://a.example:8443", true],
  ["a.example:80", "http://a.example", true],
  ["10.0.0.1", "https://10.0.0.1:8000", true],
  ["[fd00::1]", "https://[fd00::1]:8000", true],
  ["fd00::1", "https://[fd00::1]:8000", true],
  ["[fd00::1]:8000", "https://[fd00::1]:8000", true],
  ["[fd00::1]:8001", "https://[fd00::1]:8000", false],
  ["", "https://a.example", false],
  [",", "https://a.example", false],
])("NO_PROXY=%s exempts %s: %s", (list, address, exempt) => {
  for (const name of ["NO_PROXY", "no_proxy"])
    expect(of(address, { ...proxy, [name]: list }) === undefined).toBe(exempt);
});

test("a user and password are for the proxy alone", () => {
  const found = proxyFor("https://a.example", { HTTPS_PROXY: "http://me:s%40cret@secure:3128" });
  expect(found).toMatchObject({ origin: "http://secure:3128", variable: "HTTPS_PROXY" });
  expect(Buffer.from(found!.authorization!.slice("Basic ".length), "base64").toString()).toBe("me:s@cret");
});

test.each(["socks5://me:secret@host:1", "http://me:secret@", "ftp://me:secret@host"])(
  "%s is refused, without its password",
  (value) => {
    const read = () => proxyFor("https://a.example", { HTTPS_PROXY: value });
    expect(read).toThrow(ProxyError);
    expect(read).toThrow(/^(?!.*secret).*HTTPS_PROXY.*http:\/\/HOST:PORT/s);
  },
);
