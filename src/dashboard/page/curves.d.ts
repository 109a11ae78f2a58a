export interface Curve {
  title: string;
  hint?: string;
  lines: [name: string, label: string, color: string][];
  stacked?: boolean;
  range?: [low: number | null, high: number | null];
  share?: boolean;
  empty?: string;
}
export declare const curves: readonly Curve[];
