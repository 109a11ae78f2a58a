// Looks languages of programs up, by name or by the tag of a fence.
import { messageOf } from "../errors.ts";
import { entryOf } from "../maps.ts";
import type { Language, Tools } from "./language.ts";
import { languages } from "./list.ts";

export { languages };

/** A language that programs can be written in. */
export type LanguageName = keyof typeof languages;

export const languageNames = Object.keys(languages) as [LanguageName, ...LanguageName[]];

/** The language of that name; Python where none is named. */
export const languageOf = (name: LanguageName = "python"): Language => languages[name];

/** The language that a name means: its own or a tag of code fences. */
export function languageNamed(name: string): LanguageName | undefined {
  const small = name.trim().toLowerCase();
  return languageNames.find((own) => own === small || languageOf(own).tags.includes(small));
}

/** The languages of a text: names with commas, or "any" for all; undefined where one is not known. */
export function languagesNamed(text: string): readonly LanguageName[] | undefined {
  if (text.trim().toLowerCase() === "any") return languageNames;
  const names = text.split(",").map(languageNamed);
  return names.includes(undefined) ? undefined : [...new Set(names as LanguageName[])];
}

/** Among the languages that were asked for, the one that the tag of a fence names; else the first. */
export const languageOfTag = (asked: readonly LanguageName[], info: string): LanguageName | undefined => {
  if (asked.length < 2) return asked[0];
  const named = languageNamed(/^[^\s{,;:]*/.exec(info.trim())![0]);
  return named !== undefined && asked.includes(named) ? named : asked[0];
};

const found = new Map<LanguageName, Promise<Tools | string>>();

/** What this machine has for a language with a runtime of its own, looked for once; where it has none, a text that says what is missing. */
export const toolsOf = (name: LanguageName): Promise<Tools | string> =>
  entryOf(found, name, () =>
    (languageOf(name).runtime?.find() ?? Promise.resolve("a runtime")).catch(
      // A command that fails is no use either.
      (error: unknown) => `one that answers (${messageOf(error).split("\n")[0]})`,
    ),
  );

/** Whether tests can call functions of its programs; else they only read stdin. */
export const canCall = (name: LanguageName): boolean => {
  const { runtime } = languageOf(name);
  return runtime === null || runtime.call !== undefined;
};
