/** Small things that are said about a trial. */
import type { Trial } from "../../state/data";

/** The metric that stands for how training goes: a loss, else the first there is. */
export function lossName(trial: Trial | null): string | null {
  if (!trial || trial.metrics.length === 0) return null;
  const { metrics, losses } = trial;
  const exact = ["loss", "train/loss", "loss/train", "train_loss", ...losses, ...losses.map((loss) => `loss/${loss}`)];
  const found = exact.find((name) => metrics.includes(name)) ?? metrics.find((name) => /loss/i.test(name));
  return found ?? metrics[0];
}

/** Share of the training's time that recording took; null while nothing can be said. */
export function costOf(trial: Trial): number | null {
  const { seconds, time } = trial.steps;
  const own = trial.config.endoscope as { recording_seconds?: unknown; budget?: { share?: unknown } } | undefined;
  const share = own?.budget?.share; // from durations of whole steps; where there is no budget, what our own clock says
  if (typeof share === "number") return share;
  const told = own?.recording_seconds;
  const spent = typeof told === "number" ? told : seconds.reduce((sum, each) => sum + (each || 0), 0);
  const last = Math.max(trial.updated, time[time.length - 1] ?? 0);
  const whole = last - trial.created;
  return seconds.length > 0 && spent < whole ? spent / whole : null;
}

/** `gradient:total` -> `gradient · total`. */
export function ofWords(of: string): string {
  return of.startsWith("gradient:") ? `gradient · ${of.slice("gradient:".length)}` : of;
}

/** A step without a type has an empty one. */
export const typeWords = (type: string): string => type || "(no type)";
