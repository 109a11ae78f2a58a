// Where a program failed, from what its compiler, interpreter or runtime says. It is read for people; nothing is decided by it.
import { type LanguageName, languageOf } from "../core/languages/languages.ts";

/** The line of the program that stderr names, counted from 1; undefined where it names none. */
export function failedLine(stderr: string, language: LanguageName = "python"): number | undefined {
  const [, ending = ""] = /\.(\w+)$/.exec(languageOf(language).fileName) ?? [];
  // Java's file is called as the class is; frames of its library have a module before them.
  const file = language === "java" ? "\\b(?!WhetstoneStart)[A-Z]\\w*" : "\\bsolution";
  const own = language === "java" ? stderr.replace(/^\s+at [a-z.]+\/.*$/gm, "") : stderr;
  const places = [...own.matchAll(new RegExp(`${file}\\.${ending}(?:", line |:)(\\d+)`, "g"))];
  // Python tells the innermost call last.
  const place = language === "python" ? places.at(-1) : places[0];
  return place && Number(place[1]);
}
