// Where a suite's problems are found: the file that is named, an installed package that carries them, or the hub; and which are chosen.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { messageOf } from "../core/errors.ts";
import { DataError } from "../data/errors.ts";
import { Hub } from "../hub/hub.ts";
import { rowsOf } from "./rows.ts";
import type { Form, Suite, SuiteProblem } from "./suite.ts";
import { formOf, type NamedSuite } from "./suites.ts";

export interface LoadedSuite {
  form: Form;
  problems: SuiteProblem[];
  /** Where they were read from. */
  from: string;
  published: string;
}

interface FindOptions {
  signal?: AbortSignal;
  onNotice?(line: string): void;
  /** The Python that is asked for packages. */
  python?: string;
}

/** The problems that suite= names; undefined: a file of problems as training reads them. */
export async function loadSuite(named: NamedSuite, options: FindOptions = {}): Promise<LoadedSuite | undefined> {
  const { suite, file, window, word } = named;
  const found = file === undefined ? await filesOf(suite!, named, options) : { files: [file], from: file };
  let form = suite?.form;
  const problems: SuiteProblem[] = [];
  for (const path of found.files)
    for await (const row of rowsOf(path)) {
      form ??= formOf(row.row);
      if (!form) return undefined;
      if (!form.fits(row.row))
        throw new DataError(
          "data/bad-suite",
          `${path} has a row that is none of ${word}: its columns are ${Object.keys(row.row).join(", ")}. Give the file as it was published, or name the suite that it is of.`,
        );
      const problem = form.problem(row);
      if (
        problem &&
        (!window || (problem.date !== undefined && problem.date >= window.from && problem.date <= window.to))
      )
        problems.push(problem);
      options.signal?.throwIfAborted();
    }
  if (form && problems.length > 0)
    return { form, problems, from: found.from, published: datesOf(problems) ?? form.published };
  throw new DataError(
    "data/bad-suite",
    `suite=${word} has no problem${window ? ` of ${window.from} to ${window.to}` : ""} in ${found.from}. ${window ? "Only suites whose problems have days can be cut by them: name other days." : "Name another file."}`,
  );
}

/** The first and the last day, where problems have their own. */
function datesOf(problems: readonly SuiteProblem[]): string | undefined {
  const dates = problems.flatMap(({ date }) => date ?? []).toSorted();
  return dates.length > 0 ? `${dates[0]} to ${dates.at(-1)}` : undefined;
}

async function filesOf({ hub: { id, files }, pip }: Suite, { word, window }: NamedSuite, options: FindOptions) {
  const packaged = pip && (await inPackage(pip.module, pip.file, options.python ?? "python3"));
  if (packaged) return { files: [packaged], from: `${pip.name} (${packaged})` };
  const { signal, onNotice } = options;
  const hub = new Hub({ onNotice });
  try {
    const snapshot = await hub.snapshot({ type: "dataset", id }, signal);
    const wanted = files(
      snapshot.files.map(({ path }) => path),
      window,
    );
    if (wanted.length === 0)
      throw new DataError(
        "data/bad-suite",
        `The data set ${id} has none of the suite's files (commit ${snapshot.commit}).`,
      );
    const paths: string[] = [];
    for (const file of snapshot.files.filter(({ path }) => wanted.includes(path))) {
      onNotice?.(`${id}: ${file.path}, ${(file.sizeBytes / 1e6).toFixed(1)} MB`);
      paths.push(await hub.download(snapshot, file, { signal }));
    }
    return { files: paths, from: `${id} at ${snapshot.commit.slice(0, 8)}` };
  } catch (cause) {
    signal?.throwIfAborted();
    const download = `curl -LO ${hub.endpoint}/datasets/${id}/resolve/main/FILE`;
    const install = pip ? `pip install ${pip.name}; or ` : "";
    throw new DataError(
      "data/no-suite",
      `The problems of suite=${word} are not here. ${messageOf(cause)} To have them: ${install}on a machine with a network ${download} (its files: ${hub.endpoint}/datasets/${id}/tree/main), then suite=FILE.`,
      { cause },
    );
  }
}

/** A file of an installed Python package; nothing of the package is run. */
async function inPackage(module: string, file: string, python: string): Promise<string | undefined> {
  const program = `import importlib.util as u; s = u.find_spec(${JSON.stringify(module)}); print(s.submodule_search_locations[0] if s else "")`;
  const { stdout } = await promisify(execFile)(python, ["-c", program], { timeout: 20_000 }).catch(() => ({
    stdout: "",
  }));
  const path = join(stdout.trim(), file);
  return stdout.trim() !== "" && existsSync(path) ? path : undefined;
}
