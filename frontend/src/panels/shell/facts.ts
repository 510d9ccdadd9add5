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

/** `gradient:total` -> `gradient · total`. */
export function ofWords(of: string): string {
  return of.startsWith("gradient:") ? `gradient · ${of.slice("gradient:".length)}` : of;
}

/** A step without a type has an empty one. */
export const typeWords = (type: string): string => type || "(no type)";
