// Opens the embedded jail, runs one program and prints what happened as JSON. Started by other tests in changed surroundings.
// With a second argument "hold" the program never ends; with "threads" a second one starts more of them than it may.
import { WhetstoneError } from "../../src/core/errors.ts";
import { type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { job, stdin, textOf } from "./plain.ts";

const level = process.argv[2] as JailLevel | undefined;
try {
  const jail = await openJail({ slots: 1, ...(level ? { levels: [level] } : {}) });
  if (process.argv[3] === "hold") {
    console.log("holding");
    await jail.run(job("while True: pass", [stdin("")], { wallMs: 120_000, cpuMs: 120_000 }), () => "continue");
  }
  const [outcome] = await jail.run(job("print(int(input()) + 1)", [stdin("41")]), () => "continue");
  let threads: string | undefined;
  if (process.argv[3] === "threads") {
    const source =
      "import threading, time\nthreading.stack_size(65536)\nfor _ in range(400): threading.Thread(target=time.sleep, args=(2,)).start()";
    const [many] = await jail.run(job(source, [stdin("")], { wallMs: 20_000 }), () => "continue");
    threads = many!.status;
  }
  await jail.close();
  console.log(JSON.stringify({ ...jail.description, answer: textOf(outcome), threads }));
} catch (error) {
  if (!(error instanceof WhetstoneError)) throw error;
  console.log(JSON.stringify({ code: error.code, message: error.message }));
}
