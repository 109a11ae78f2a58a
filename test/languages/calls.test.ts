// Functions of every language are called with the tests' arguments and judged by the value: those that people write pass, those that want more than
// to be called fail. A few of each by default; WHET_LANGUAGES=1 runs all, at both levels and over HTTP.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LanguageName, toolsOf } from "../../src/core/languages/languages.ts";
import { createGrader, type Grader, normalizeTests } from "../../src/grading/index.ts";
import { openFusion } from "../../src/sandbox/fusion/fusion.ts";
import { startFusionServer } from "../../src/sandbox/fusion/server.ts";
import { type Jail, openJail } from "../../src/sandbox/jail.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { callTasks, honestCalls, hostileCalls } from "./calls.ts";

const whole = process.env["WHET_LANGUAGES"] !== undefined;
const names = Object.keys(honestCalls) as (keyof typeof honestCalls)[];

/** As data sets write calls. */
const testsOf = ({
  name,
  inputs,
  outputs,
}: {
  name: string;
  inputs: readonly unknown[];
  outputs: readonly unknown[];
}) =>
  normalizeTests(
    inputs.map((input, index) => ({
      ...{ type: "function_call", fn_name: name, input },
      output: JSON.stringify(outputs[index]),
    })),
  ).tests;

const places = ["jail", "landlock", "http"] as const;
/** By default every language in the jail, and one of each kind over HTTP. */
const namesAt = (where: (typeof places)[number]) =>
  whole || where === "jail" ? names : (["typescript", "cpp"] satisfies typeof names);

describe.each(whole ? places : (["jail", "http"] as const))("%s", (where) => {
  let jail: Jail;
  let sandbox: Sandbox;
  let grader: Grader;
  let closeAll: () => Promise<unknown> = async () => {};
  beforeAll(async () => {
    sandbox = jail = await openJail({ levels: [where === "landlock" ? "landlock" : "jail"], slots: 2 });
    closeAll = () => jail.close();
    if (where === "http") {
      const server = await startFusionServer({ jail, port: 0, concurrency: 2 });
      sandbox = await openFusion({ url: server.url });
      closeAll = () => Promise.all([sandbox.close(), server.close(), jail.close()]);
    }
    grader = createGrader({ sandbox, limits: { rewardTimeoutS: 3, memoryBytes: 512 * 1024 ** 2 } });
  }, 60_000);
  afterAll(() => closeAll());

  const gradeIn = (language: LanguageName, code: string, task: Parameters<typeof testsOf>[0]) =>
    grader.grade({ problem: { tests: testsOf(task), languages: [language] }, code });

  test.each(namesAt(where))("%s", { timeout: 600_000 }, async (language) => {
    if (typeof (await toolsOf(language)) === "string") return expect(names).toContain(language);
    await sandbox.supports(language);
    const good = honestCalls[language].filter((_, index) => whole || index % 5 === 0);
    const verdicts = await Promise.all(
      good.map(async ({ name, task, code }) => {
        const { verdict, status, failure } = await gradeIn(language, code, callTasks[task]);
        return `${name}: ${verdict}${verdict === "pass" ? "" : `, ${status} ${failure?.stderr} ${failure?.printed}`}`;
      }),
    );
    expect(verdicts).toEqual(good.map(({ name }) => `${name}: pass`));

    if (language === "javascript" || language === "typescript") return undefined;
    const bad = Object.entries(hostileCalls[language]).filter((_, index) => whole || index < 2);
    const wanted = { name: "f", inputs: [[1], [2]], outputs: [5, 6] };
    const got = await Promise.all(
      bad.map(async ([name, code]) => `${name}: ${(await gradeIn(language, code, wanted)).verdict}`),
    );
    expect(got).toEqual(bad.map(([name]) => `${name}: fail`));

    const without = await gradeIn(
      language,
      language === "java" ? "class Solution {}" : language === "go" ? "package main" : "",
      wanted,
    );
    expect([without.verdict, without.status, without.failure?.stderr]).toEqual([
      "fail",
      "target_not_found",
      expect.anything(),
    ]);
    return undefined;
  });
});
