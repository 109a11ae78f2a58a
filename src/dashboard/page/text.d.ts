export declare const hidden: RegExp;
export declare function nameOf(character: string): string;
export declare function plain(text: unknown): string;
/** What begins a comment, and the words where they are not those of languages with braces. */
export interface Syntax {
  comment: string;
  keywords?: string;
}
export declare function codePieces(source: string, syntax?: Syntax): { kind: string; text: string }[];
export declare function inAddress(text: string): string;
export type Kind = "pass" | "fail" | "format" | "ungraded" | "waiting";
export declare const signs: Readonly<Record<Kind, string>>;
export declare function kindOf(sample: { verdict: string | null; status: string }): Kind;
