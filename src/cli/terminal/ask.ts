// Questions on a terminal: about a run directory that is already there, and those that only a written yes answers.
import { createInterface } from "node:readline";
import { configChanges, describeChange } from "../../rl/resume.ts";
import type { Choice } from "../../runs/directory.ts";

/** Asks only where the command says something else than the run does: the same command simply goes on. */
export function askAboutRun(
  recorded: Readonly<Record<string, unknown>>,
  settings: Readonly<Record<string, unknown>>,
): (question: string) => Promise<Choice> {
  return async (question) => {
    // More steps are more of the same run.
    const changes = configChanges(recorded, { ...recorded, ...settings, max_steps: recorded["max_steps"] });
    if (changes.length === 0) return "resume";
    return ask(`${question} ${changes.map(describeChange).join("; ")}.\n[R]esume with it, delete the run, or exit? `);
  };
}

/** Enter and r resume; deleting has to be written out; Ctrl-C and Ctrl-D leave everything as it is. */
const ask = (question: string): Promise<Choice> =>
  onTerminal<Choice>(question, "exit", (word) => {
    if (word === "" || "resume".startsWith(word)) return "resume";
    if (word === "delete") return "delete";
    if ("exit".startsWith(word) || "quit".startsWith(word)) return "exit";
    return { again: "Please answer resume (or just Enter), delete, or exit: " };
  });

/** Yes has to be written out; everything else is a no, and where there is no terminal nobody says yes. */
export async function askYes(question: string, signal?: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  return onTerminal(`${question} Write yes: `, false, (word) => word === "yes", signal);
}

/** Asks until `read` takes the answer. Ctrl-C, Ctrl-D and the signal answer `gone`. */
function onTerminal<Answer>(
  question: string,
  gone: Answer,
  read: (word: string) => Answer | { again: string },
  signal?: AbortSignal,
): Promise<Answer> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr, ...(signal && { signal }) });
  return new Promise<Answer>((resolve) => {
    const answered = (answer: Answer) => {
      resolve(answer);
      terminal.close();
    };
    terminal.on("SIGINT", () => answered(gone));
    terminal.on("close", () => resolve(gone));
    const next = (prompt: string) =>
      terminal.question(prompt, (typed) => {
        const answer = read(typed.trim().toLowerCase());
        if (typeof answer === "object" && answer !== null && "again" in answer) next(answer.again);
        else answered(answer as Answer);
      });
    next(question);
  });
}
