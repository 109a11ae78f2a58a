// The question about a run directory that is already there, asked on a terminal.
import { createInterface } from "node:readline";
import { configChanges, describeChange } from "../rl/resume.ts";
import type { Choice } from "../runs/directory.ts";

/** Asks only where the command says something else than the run does: the same command simply goes on. */
export function askAboutRun(
  recorded: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>>,
): (question: string) => Promise<Choice> {
  return async (question) => {
    // More steps are more of the same run.
    const changes = configChanges(recorded, { ...recorded, ...given, max_steps: recorded["max_steps"] });
    if (changes.length === 0) return "resume";
    return ask(`${question} ${changes.map(describeChange).join("; ")}.\n[R]esume with it, delete the run, or exit? `);
  };
}

/** Enter and r resume; deleting has to be written out; Ctrl-C and Ctrl-D leave everything as it is. */
function ask(question: string): Promise<Choice> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise<Choice>((resolve) => {
    const answered = (choice: Choice) => {
      resolve(choice);
      terminal.close();
    };
    terminal.on("SIGINT", () => answered("exit"));
    terminal.on("close", () => resolve("exit"));
    const next = (prompt: string) =>
      terminal.question(prompt, (answer) => {
        const word = answer.trim().toLowerCase();
        if (word === "" || "resume".startsWith(word)) answered("resume");
        else if (word === "delete") answered("delete");
        else if ("exit".startsWith(word) || "quit".startsWith(word)) answered("exit");
        else next("Please answer resume (or just Enter), delete, or exit: ");
      });
    next(question);
  });
}
