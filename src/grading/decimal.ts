// Numbers as text: exact equality of decimals of any length, and the tolerance that decimal answers get. No arithmetic on
// unbounded integers, so a huge exponent or a million digits cost nothing.

/** A decimal in lowest terms: value = sign × 0.digits × 10^scale; zero has no digits. */
interface Decimal {
  negative: boolean;
  digits: string;
  scale: number;
}

const absoluteTolerance = 1e-8;
const relativeTolerance = 1e-5;
const maxExponent = 400;
const maxDigits = 10_000;

/** ASCII digits, no leading zeros ("007" is text), no underscores. */
const strictPattern = /^([+-]?)(?:(0|[1-9][0-9]*)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?$/;
/** The same with leading zeros. */
const paddedPattern = /^([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?$/;

function parse(text: string, pattern: RegExp): Decimal | undefined {
  if (text.length > maxDigits + 16) return undefined;
  const match = pattern.exec(text);
  if (!match) return undefined;
  const whole = match[2] ?? "";
  const fraction = match[3] ?? match[4] ?? "";
  const exponent = match[5] === undefined ? 0 : Number(match[5]);
  if (Math.abs(exponent) > maxExponent || whole.length + fraction.length > maxDigits) return undefined;
  const all = whole + fraction;
  let start = 0;
  while (all.charCodeAt(start) === 48) start++;
  let end = all.length;
  while (end > start && all.charCodeAt(end - 1) === 48) end--;
  if (start === end) return { negative: false, digits: "", scale: 0 };
  return { negative: match[1] === "-", digits: all.slice(start, end), scale: whole.length - start + exponent };
}

const same = (a: Decimal, b: Decimal) => a.negative === b.negative && a.scale === b.scale && a.digits === b.digits;

const isWhole = ({ digits, scale }: Decimal) => digits.length <= scale || digits === "";

/**
 * Whether two number texts agree: the same exact decimal, or, when `expected` is written with a point or an exponent,
 * |actual - expected| <= 1e-8 + 1e-5 |expected|. Where the expected fraction is zero (`5.0`, `1e5`) the answer may be a count, and a
 * neighbour is another answer: no relative distance, and no whole number but that one. Texts that are not plain numbers never agree here.
 */
export function numbersAgree(actual: string, expected: string): boolean {
  const b = parse(expected, strictPattern);
  if (!b) return false;
  const a = parse(actual, strictPattern);
  if (!a) return false;
  if (same(a, b)) return true;
  if (!isDecimalText(expected)) return false;
  if (!isWhole(b)) return closeEnough(actual, expected, absoluteTolerance, relativeTolerance);
  // Past 2^53 doubles cannot tell.
  const isSmall = Math.abs(Number(expected)) < Number.MAX_SAFE_INTEGER;
  return !isWhole(a) && isSmall && closeEnough(actual, expected, absoluteTolerance, 0);
}

/** Whether a number was written as a decimal; integers never get a tolerance. */
export const isDecimalText = (text: string) => /[.eE]/.test(text);

/** |actual - expected| <= absolute + relative × |expected|, for texts that are numbers. */
function closeEnough(actual: string, expected: string, absolute: number, relative: number): boolean {
  const a = Number(actual);
  const b = Number(expected);
  return Number.isFinite(a) && Number.isFinite(b) && Math.abs(a - b) <= absolute + relative * Math.abs(b);
}

/** Exact decimal equality as LiveCodeBench has it: leading zeros do not matter, infinities are numbers, NaN equals nothing. */
export function decimalsEqual(actual: string, expected: string): boolean {
  const a = parse(actual, paddedPattern);
  const b = parse(expected, paddedPattern);
  if (a && b) return same(a, b);
  const infinity = /^([+-]?)inf(?:inity)?$/i;
  const x = infinity.exec(actual);
  const y = infinity.exec(expected);
  return x !== null && y !== null && (x[1] === "-") === (y[1] === "-");
}

/** Within an absolute or a relative distance, whichever is given; for checkers that name their own tolerance. */
export function withinTolerance(
  actual: string,
  expected: string,
  tolerance: { absolute?: number | undefined; relative?: number | undefined },
): boolean {
  if (!parse(expected, paddedPattern) || !parse(actual, paddedPattern)) return false;
  return (
    (tolerance.absolute !== undefined && closeEnough(actual, expected, tolerance.absolute, 0)) ||
    (tolerance.relative !== undefined && closeEnough(actual, expected, 0, tolerance.relative))
  );
}
