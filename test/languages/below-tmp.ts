// Runs a sum in JavaScript and one in Go in a jail, and prints how each ended. Started by covered-tools.test.ts with tools below /tmp.
import { messageOf, WhetstoneError } from "../../src/core/errors.ts";
import { languageOf } from "../../src/core/languages/languages.ts";
import { type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { job, stdin, textOf } from "../sandbox/plain.ts";

const jail = await openJail({ slots: 1, levels: [process.argv[2] as JailLevel] });
const endOf = async (language: "javascript" | "go") => {
  const sum = { ...job(languageOf(language).sum, [stdin("17 25\n")]), language };
  try {
    const [outcome] = await jail.run(sum, () => "continue");
    return { status: outcome!.status, printed: textOf(outcome) };
  } catch (error) {
    return { code: error instanceof WhetstoneError ? error.code : undefined, message: messageOf(error) };
  }
};
const ends = { javascript: await endOf("javascript"), go: await endOf("go") };
await jail.close();
console.log(JSON.stringify(ends));
