import { describe, expect, test } from "vitest";
import { Credentials } from "./credentials.ts";
import { defaultBaseUrl, defaultTimings, resolveOptions } from "./options.ts";

describe("options", () => {
  test("come from the environment where they are not given", () => {
    const options = resolveOptions(
      {},
      {
        TINKER_API_KEY: "tml-env",
        TINKER_BASE_URL: "http://127.0.0.1:1/prefix",
        TINKER_PROJECT_ID: "p",
        TINKER_TAGS: "a, b,a,",
        CLOUDFLARE_ACCESS_CLIENT_ID: "id",
        CLOUDFLARE_ACCESS_CLIENT_SECRET: "secret",
      },
    );
    expect(options).toMatchObject({
      credential: "tml-env",
      projectId: "p",
      tags: ["a", "b"],
      headers: { "CF-Access-Client-Id": "id", "CF-Access-Client-Secret": "secret" },
      timings: defaultTimings,
    });
    expect(options.baseUrl.href).toBe("http://127.0.0.1:1/prefix");
  });

  test("given ones win, and an empty variable counts as unset", () => {
    const environment = { TINKER_API_KEY: "tml-env", TINKER_BASE_URL: "", TINKER_TAGS: "a" };
    const options = resolveOptions({ apiKey: "tml-given", tags: [], timings: { stuckMs: 1 } }, environment);
    expect(options.credential).toBe("tml-given");
    expect(options.tags).toEqual([]);
    expect(options.baseUrl.href).toBe(defaultBaseUrl);
    expect(options.timings).toEqual({ ...defaultTimings, stuckMs: 1 });
  });

  test("an error about a key does not show it", () => {
    const secret = "sk-very-secret-key";
    try {
      resolveOptions({ apiKey: secret }, {});
      expect.unreachable();
    } catch (error) {
      expect((error as Error).message).not.toContain(secret.slice(0, 8));
    }
  });
});

describe("credentials", () => {
  test("a credential command's output is exchanged when the server wants that", async () => {
    const credentials = new Credentials("", "echo tml-from-command");
    credentials.useCommand = true;
    const exchanged: string[] = [];
    await credentials.useTokens(async (credential) => {
      exchanged.push(credential);
      return "eyJ.e30.x";
    });
    expect(exchanged).toEqual(["tml-from-command"]);
    expect(await credentials.current()).toBe("eyJ.e30.x");
    credentials.close();
  });

  test.each(["exit 3", "true"])("a command that gives nothing (%s) is an error that says so", async (command) => {
    const credentials = new Credentials("", command);
    credentials.useCommand = true;
    await expect(credentials.useTokens(async () => "never")).rejects.toMatchObject({
      code: "client/credential-command",
    });
    credentials.close();
  });
});
