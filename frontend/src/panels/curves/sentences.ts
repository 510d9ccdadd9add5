/** What a plot says in words: what is on it, what is not, and why. */
import { shortNumber, wholeNumber } from "../../model/numbers";
import { placeText } from "./axes";
import { extent, type Curve } from "./data";
import { leftOut } from "./thin";
import type { WithoutOutliers } from "./value_range";

function counts(curves: readonly Curve[], log: boolean): { points: number; notFinite: number; notPositive: number } {
  const sum = { points: 0, notFinite: 0, notPositive: 0 };
  for (const curve of curves) {
    if (curve.faint) continue; // it repeats another one
    const { notFinite, notPositive } = leftOut(curve.y);
    sum.points += curve.y.length;
    sum.notFinite += notFinite;
    if (log) sum.notPositive += notPositive;
  }
  return sum;
}

/** Why there is nothing to see; null if there is something. */
export function emptySentence(curves: readonly Curve[], log: boolean): string | null {
  const { points, notFinite, notPositive } = counts(curves, log);
  if (points === 0) return "There are no values yet.";
  if (notFinite === points) return "All values are NaN or infinite: there is no curve to draw.";
  if (notFinite + notPositive < points) return null;
  return "No value is above zero: switch the logarithmic axis off to see them.";
}

/** What is missing from the picture: "12 values ≤ 0, 3 not finite: not drawn". */
export function leftOutNote(curves: readonly Curve[], log: boolean): string {
  const { notFinite, notPositive } = counts(curves, log);
  const parts = [
    notPositive > 0 ? `${wholeNumber(notPositive)} ${notPositive === 1 ? "value" : "values"} ≤ 0` : "",
    notFinite > 0 ? `${wholeNumber(notFinite)} not finite` : "",
  ].filter(Boolean);
  return parts.length > 0 ? `${parts.join(", ")}: not drawn` : "";
}

/** What an axis without outliers shows: "2nd to 98th percentile, 0.1 to 2.3: 4 values lie outside the axis". */
export function axisNote({ percentiles, outside }: WithoutOutliers): string {
  const [low, high] = percentiles.map((value) => shortNumber(value));
  const left = outside === 0 ? "no value lies" : outside === 1 ? "1 value lies" : `${wholeNumber(outside)} values lie`;
  return `2nd to 98th percentile, ${low} to ${high}: ${left} outside the axis`;
}

export function summary(curves: readonly Curve[], axis: "step" | "time"): string {
  const ends = extent(curves);
  if (!ends) return "There are no values yet.";
  const shown = curves.filter((curve) => !curve.faint);
  const names = shown.slice(0, 6).map((curve) => curve.label).join(", ");
  const more = shown.length > 6 ? ` and ${shown.length - 6} more` : "";
  return `${names}${more}: ${placeText(ends[0], axis)} to ${placeText(ends[1], axis)}.`;
}
