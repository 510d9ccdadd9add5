/** Numbers as people read them: three significant digits on screen, everything there is on hover and on copy. */

const MINUS = "−"; // as wide as a digit, unlike the hyphen

/** `0.048`, `3.7e-3`, `−2.1e-4`, `12 400`, `NaN`, `∞`. */
export function shortNumber(value: number, digits = 3): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : `${MINUS}∞`;
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-2 ? scientific(size, digits) : plain(size, digits);
  return value < 0 ? MINUS + text : text;
}

function scientific(size: number, digits: number): string {
  const [mantissa, exponent] = size.toExponential(digits - 1).split("e");
  const trimmed = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
  return `${trimmed}e${exponent.replace("+", "")}`;
}

function plain(size: number, digits: number): string {
  if (Number.isInteger(size)) return groupDigits(String(size));
  // Digits before the point are never turned into zeros: 1234.5 is 1235, not 1230.
  if (size >= 10 ** (digits - 1)) return groupDigits(String(Math.round(size)));
  return String(Number(size.toPrecision(digits)));
}

/** Every digit of the float: what is shown on hover and what is copied. Understood by Python and spreadsheets. */
export function exactNumber(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  return Object.is(value, -0) ? "-0" : withoutZeros(value);
}

/** 1.2e-6 instead of 0.0000012: zeros have to be counted. */
const withoutZeros = (value: number): string =>
  value !== 0 && Math.abs(value) < 1e-4 ? value.toExponential() : String(value);

/** The shortest text that gives back the same 32-bit float: 0.1 is not 0.10000000149011612. */
export function exactFloat32(value: number): string {
  if (!Number.isFinite(value) || value === 0) return exactNumber(value);
  for (let digits = 1; digits <= 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return withoutZeros(Number(text));
  }
  return exactNumber(value);
}

/** A count with narrow spaces between thousands. */
export function wholeNumber(value: number): string {
  return (value < 0 ? MINUS : "") + groupDigits(String(Math.abs(Math.round(value))));
}

export function percent(fraction: number): string {
  return Number.isFinite(fraction) ? `${shortNumber(fraction * 100)} %` : shortNumber(fraction);
}

function groupDigits(digits: string): string {
  return digits.length < 5 ? digits : digits.replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
