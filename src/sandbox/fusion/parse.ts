// Reads the body of /run_code as Sandbox Fusion does: unknown fields are ignored, numbers may be texts, and what is wrong is named
// field by field in the shape of a 422 answer.
import { isInside } from "../../core/files.ts";
import { type LanguageName, languageNames, languages } from "../../core/languages/languages.ts";
import { maxSourceBytes } from "../sandbox.ts";
import { fusionLanguages } from "./api.ts";
import { excessOf } from "./modest.ts";

export interface ParsedRequest {
  language: LanguageName;
  code: string;
  runTimeoutS: number;
  memoryBytes: number;
  stdin: string;
  files: Map<string, Uint8Array>;
  fetchFiles: string[];
}

const maxRunTimeoutS = 7_200;

export interface RequestProblem {
  type: string;
  loc: (string | number)[];
  msg: string;
  input?: unknown;
}

/** The request, or everything that is wrong with it. `maxMemoryBytes`: the limit where it names none, and the most it can name. */
export function parseRunCode(body: Uint8Array, maxMemoryBytes: number): ParsedRequest | { problems: RequestProblem[] } {
  const problems: RequestProblem[] = [];
  const wrong = (type: string, field: string | undefined, msg: string, input?: unknown) => {
    problems.push({
      type,
      loc: field === undefined ? ["body"] : ["body", ...field.split("\0")],
      msg,
      input: shown(input),
    });
  };
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const excess = excessOf(bytes);
  if (excess !== undefined) {
    wrong("json_too_large", undefined, `The body is refused: ${excess}`);
    return { problems };
  }
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    wrong("json_invalid", undefined, "JSON decode error");
    return { problems };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    wrong("model_attributes_type", undefined, "Input should be a valid dictionary", value);
    return { problems };
  }
  const fields = value as Record<string, unknown>;

  const number = (field: string, fallback: number, integer: boolean): number => {
    const given = fields[field];
    if (given === undefined) return fallback;
    const parsed = typeof given === "string" && given.trim() !== "" ? Number(given) : given;
    if (typeof parsed === "number" && Number.isFinite(parsed) && (!integer || Number.isInteger(parsed))) return parsed;
    wrong(
      integer ? "int_type" : "float_type",
      field,
      `Input should be a valid ${integer ? "integer" : "number"}`,
      given,
    );
    return fallback;
  };

  const { code, language } = fields;
  if (code === undefined) wrong("missing", "code", "Field required");
  else if (typeof code !== "string") wrong("string_type", "code", "Input should be a valid string", code);
  else if (Buffer.byteLength(code) > maxSourceBytes)
    wrong("too_long", "code", `The code is longer than ${maxSourceBytes} bytes`);
  if (language === undefined) wrong("missing", "language", "Field required");
  else if (typeof language !== "string" || !fusionLanguages.includes(language))
    wrong("enum", "language", `Input should be one of: ${fusionLanguages.join(", ")}`, language);
  else if (!languageOfFusion(language)) {
    const known = languageNames.map((name) => languages[name].fusion).join(", ");
    const msg = `This server runs ${known}; there is no runtime for ${language} here`;
    wrong("unsupported_language", "language", msg, language);
  }

  number("compile_timeout", 10, false);
  const runTimeoutS = Math.min(number("run_timeout", 10, false), maxRunTimeoutS);
  const memory = number("memory_limit_MB", -1, true);
  const stdin = fields["stdin"] ?? "";
  if (typeof stdin !== "string") wrong("string_type", "stdin", "Input should be a valid string", stdin);

  const files = new Map<string, Uint8Array>();
  const given = fields["files"] ?? {};
  if (typeof given !== "object" || Array.isArray(given))
    wrong("dict_type", "files", "Input should be a valid dictionary", given);
  else
    for (const [path, content] of Object.entries(given)) {
      if (content === null || path.includes("IGNORE_THIS_FILE")) continue;
      const field = `files\0${path}`;
      const bytes = typeof content === "string" ? fromBase64(content) : undefined;
      if (bytes === undefined) wrong("base64", field, "Input should be base64 with correct padding");
      else if (!isInside(path)) wrong("path", field, "The path must be relative and stay inside the work folder", path);
      else files.set(path, bytes);
    }

  const fetchFiles: string[] = [];
  const wanted = fields["fetch_files"] ?? [];
  if (!Array.isArray(wanted)) wrong("list_type", "fetch_files", "Input should be a valid list", wanted);
  else
    for (const [index, path] of wanted.entries()) {
      const field = `fetch_files\0${index}`;
      if (typeof path !== "string") wrong("string_type", field, "Input should be a valid string", path);
      else if (!isInside(path)) wrong("path", field, "The path must be relative and stay inside the work folder", path);
      else fetchFiles.push(path);
    }

  if (problems.length > 0) return { problems };
  return {
    language: languageOfFusion(language as string)!,
    code: code as string,
    runTimeoutS,
    memoryBytes: memory > 0 ? Math.min(memory * 1024 ** 2, maxMemoryBytes) : maxMemoryBytes,
    stdin: stdin as string,
    files,
    fetchFiles,
  };
}

const languageOfFusion = (fusion: string): LanguageName | undefined =>
  languageNames.find((name) => languages[name].fusion === fusion);

/** Foreign characters are dropped, as the original does; wrong padding is not base64. */
function fromBase64(text: string): Uint8Array | undefined {
  const plain = text.replaceAll(/[^A-Za-z0-9+/=]/g, "");
  return plain.length % 4 === 0 ? Buffer.from(plain, "base64") : undefined;
}

/** Echoes small values only. */
const shown = (input: unknown) =>
  typeof input === "string" ? input.slice(0, 100) : typeof input === "object" ? undefined : input;
