// The languages of programs, by the name that Sandbox Fusion has for each. A new one is its file and a line here.
import type { Language } from "./language.ts";
import { python } from "./python.ts";

export const languages = { python } satisfies Record<string, Language>;

/** A language that programs can be written in. */
export type LanguageName = keyof typeof languages;

export const isLanguage = (name: string): name is LanguageName => Object.hasOwn(languages, name);

/** The language of that name; Python where none is named. */
export const languageOf = (name: LanguageName = "python"): Language => languages[name];
