/** How one number stands to another: as a ratio, kept as its decimal logarithm; of shares as the difference. */
import { evenScale, type HeatScale } from "./heat";

/** From nothing to something, and back: beyond every ratio. */
export const BEYOND = 9;
const REACH = Math.log10(30); // ×0.03 … ×30, always: pictures can be compared

export function against(value: number, reference: number, isShare: boolean): number {
  if (isShare) return value - reference;
  const [own, other] = [Math.abs(value), Math.abs(reference)];
  if (own === other) return 0;
  if (own === 0) return -BEYOND;
  return other === 0 ? BEYOND : Math.log10(own / other);
}

export const ratioScale = (isShare: boolean): HeatScale => evenScale(isShare ? 1 : REACH);

/** Of a decimal logarithm: `-0.43` -> `×0.37`. */
export function ratioText(log: number): string {
  if (log <= -BEYOND) return "×0";
  if (log >= BEYOND) return "from 0";
  if (log >= 3 || log <= -4) return `×10${superscript(Math.round(log))}`;
  const ratio = 10 ** log;
  return ratio >= 100 ? `×${Math.round(ratio)}` : `×${plainNumber(ratio, ratio < 0.1 ? 1 : 2)}`;
}

export const pointsText = (value: number): string =>
  `${value < 0 ? "−" : "+"}${Math.round(Math.abs(value) * 100)} points`;

const plainNumber = (value: number, digits: number): string => String(Number(value.toPrecision(digits)));
const superscript = (whole: number): string =>
  String(whole).replace(/./g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);
