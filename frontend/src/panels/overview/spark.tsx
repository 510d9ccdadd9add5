/** The loss of one trial, small; all curves of the table share one scale. What is no number is a bar, not a gap. */
import type { OverviewTrial } from "../../state/data";

export interface SparkScale {
  readonly last: number;
  readonly low: number;
  readonly high: number;
  readonly isLog: boolean;
}

const [WIDTH, HEIGHT] = [132, 30];

export function sparkScale(trials: readonly OverviewTrial[]): SparkScale {
  let last = 1;
  const numbers: number[] = [];
  for (const { curveSteps, curveValues } of trials) {
    if (curveSteps.length) last = Math.max(last, curveSteps[curveSteps.length - 1]);
    for (let i = 0; i < curveValues.length; i += 3) if (Number.isFinite(curveValues[i])) numbers.push(curveValues[i]);
  }
  const sorted = Float64Array.from(numbers).sort();
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
  const isLog = sorted.length > 0 && sorted[0] > 0;
  const [low, high] = [at(0.005), at(0.99)];
  return { last, low, high: high > low ? high : low + (Math.abs(low) || 1), isLog };
}

interface Props {
  readonly trial: OverviewTrial;
  readonly scale: SparkScale;
  readonly color: string;
}

export function Spark({ trial, scale, color }: Props) {
  const { curveSteps, curveValues } = trial;
  if (curveSteps.length === 0) return <span className="overview-nothing">–</span>;
  const form = scale.isLog ? Math.log : (value: number): number => value;
  const [low, high] = [form(scale.low), form(scale.high)];
  const x = (step: number): number => (step / scale.last) * WIDTH;
  const y = (value: number): number =>
    HEIGHT - 2 - (HEIGHT - 4) * Math.min(1, Math.max(0, (form(value) - low) / (high - low || 1)));
  let path = "";
  let isDown = false;
  const bars: [number, number][] = [];
  for (let i = 0; i < curveSteps.length; i++) {
    const [step, value] = [curveSteps[i], curveValues[i]];
    if (!Number.isFinite(value)) {
      const from = x(curveSteps[i - 1] ?? step);
      if (bars.length && !isDown && i > 0 && !Number.isFinite(curveValues[i - 1])) bars[bars.length - 1][1] = x(step);
      else bars.push([from, x(step)]);
      isDown = false;
      continue;
    }
    path += `${isDown ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
    isDown = true;
  }
  return (
    <svg width={WIDTH} height={HEIGHT} role="img" aria-label={sparkWords(trial)}>
      <path d={path} fill="none" stroke={color} strokeWidth="1.4" strokeLinejoin="round" />
      {bars.map(([from, to]) => (
        <rect key={from} x={from} y={HEIGHT / 2 - 2.5} width={Math.max(3, to - from)} height="5" fill="var(--nan)" />
      ))}
      {bars.length > 0 && (
        <text x={Math.min(bars[0][0] + 2, WIDTH - 24)} y={HEIGHT / 2 - 5} fill="var(--nan)" fontSize="10">NaN</text>
      )}
    </svg>
  );
}

function sparkWords({ loss, curveValues }: OverviewTrial): string {
  const last = curveValues[curveValues.length - 1];
  return `${loss}, at the end ${Number.isFinite(last) ? last.toPrecision(3) : "not a number"}`;
}
