/** From a place on the axis of metrics to a step that was recorded. */
import type { StepColumns } from "../../api/types";

/** Number of the nearest recorded step, of several equally near ones the newest; null if there is none. */
export function nearestStep(steps: StepColumns, place: number, x: "step" | "time", start: number): number | null {
  const places = x === "step" ? steps.number : steps.time;
  const wanted = x === "step" ? place : place + start;
  let best = -1;
  for (let i = 0; i < places.length; i++) {
    if (best < 0 || Math.abs(places[i] - wanted) <= Math.abs(places[best] - wanted)) best = i;
  }
  return best < 0 ? null : steps.number[best];
}
