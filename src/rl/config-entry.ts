// What there is to say of a config key besides its check, default and help text: what it is to a run, and who takes it.
import type { z } from "zod";

/** What another value means for a run that goes on. */
export type Role =
  /** It would be another run: refused. With force_resume, groups not yet trained on and unfinished evaluations are made again. */
  | "identity"
  /** What is asked, or how it is judged: groups not yet trained on and unfinished evaluations are made again. */
  | "answers"
  /** The same for groups of training alone. */
  | "groups"
  /** The same for evaluations alone. */
  | "evaluations"
  /** It counts from here on. */
  | "setting"
  /** It says where something is reached or shown, which changes no figure and is not worth a line. */
  | "place"
  /** It is about one start and not about the run: never taken over from an earlier one. */
  | "start";

/** What else there is to say of a key. */
export interface Traits {
  /** Where it is named: at the start of a run, on the card of an exported model. */
  shown?: "start" | "card" | "both";
  /** Commands that ask a run's model and grade its answers take it. */
  asking?: true;
  /** `replay` computes figures under another value. */
  replayed?: true;
  /** It names files, as data sets or alone: found from the folder where it was typed. */
  path?: "data" | "file";
  /** The environment variable that it stands for while it is empty. */
  variable?: string;
  /** It may hold a password, which is never written down. */
  secret?: true;
}

/** Makes the entries of a role: nothing else makes one, so that no key is left without. */
const inRole =
  (role: Role) =>
  <Schema extends z.ZodType, const Given extends Traits = Record<never, never>>(
    schema: Schema,
    help: string,
    traits?: Given,
  ) => ({ role, schema: schema.describe(help), ...(traits as Given) });
export const identity = inRole("identity");
export const answers = inRole("answers");
export const groups = inRole("groups");
export const evaluations = inRole("evaluations");
export const setting = inRole("setting");
export const place = inRole("place");
export const start = inRole("start");

/** Entries of keys that are declared elsewhere, such as those of sinks, which know nothing of runs that go on. */
export const settings = <Shape extends z.ZodRawShape>(shape: Shape) =>
  Object.fromEntries(Object.entries(shape).map(([name, schema]) => [name, { role: "setting", schema }])) as {
    [Name in keyof Shape]: { role: Role; schema: Shape[Name] };
  };
