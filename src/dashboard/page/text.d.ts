export declare const hidden: RegExp;
export declare function nameOf(character: string): string;
export declare function plain(text: unknown): string;
export declare function pythonPieces(source: string): { kind: string; text: string }[];
export declare function inAddress(text: string): string;
