/** A and B on one scale: over training, and as histograms; the ratio or the difference beside each. */
import { useEffect, useMemo } from "react";
import { DifferenceBars } from "../../draw/difference_bars";
import type { Distribution } from "../../model/density";
import { against, BEYOND, pointsText, ratioText } from "../../model/ratio";
import { statisticNamed } from "../../model/statistics";
import { useSeriesOf, type SeriesTable, type Statistic, type TensorKey } from "../../state/data";
import { act, type Shown } from "../../state/page";
import { Section } from "../../ui/parts";
import { useCanvas } from "../../ui/use_canvas";
import { Curves, type Curve, type Range } from "../curves/curves";
import { curvesOf, nearestStep } from "../tensor/time_series";
import { useTheme } from "../tensor/use_theme";
import { useTogether } from "../tensor/use_tensor";
import { Why } from "../tensor/words";

export type Pair<T> = readonly [T, T];

interface Props {
  readonly keys: Pair<TensorKey>;
  readonly shown: Pair<Shown>;
  readonly labels: Pair<string>;
  readonly statistic: string;
  readonly known: readonly Statistic[];
}

const COLORS = ["var(--side-a)", "var(--side-b)"];
const HEIGHT = 210;

export function OverTraining({ keys, shown, labels, statistic, known }: Props) {
  const { label, isCount, scale } = statisticNamed(statistic, known);
  const loaded = useSeriesOf(keys, [statistic]);
  const types = shown.map(({ type }) => type);
  const { values } = useTogether(loaded, !loaded.pending);
  const isSame = types[0] === types[1] && JSON.stringify(keys[0]) === JSON.stringify(keys[1]);
  const curves = useMemo(() => {
    const both = values.slice(0, isSame ? 1 : 2);
    return both.flatMap((table, i) =>
      curvesOf([{ trial: "", color: COLORS[i], table }], statistic, types[i]).map((curve): Curve => ({
        ...curve, label: isSame ? "A and B" : `${"AB"[i]} ${labels[i]}`, dashed: i > 0,
      })));
  }, [values, isSame, statistic, types[0], types[1], labels[0], labels[1]]);
  const divided = useMemo(
    () => dividedCurve(values[0] ?? null, (isSame ? values[0] : values[1]) ?? null, statistic, isCount,
      isSame ? shown[1].step : null),
    [values, statistic, isCount, isSame, shown[1].step],
  );
  const range = useMemo(() => rangeOf(curves), [curves]);
  const pick = (place: number): void => {
    const step = nearestStep(Array.from(curves[0]?.x ?? []), place);
    if (step !== null) act.choose({ step });
  };
  const name = `${label} of ${keys[0].node}`;
  const isPositive = curves.every(({ y }) => Array.from(y).every((value) => (value ?? 0) >= 0));
  const isLog = scale === "log" && !isCount && isPositive;
  const mark = shown[0].step ?? undefined;
  return (
    <>
      <Section title={`${name} over training`} aside={<Sides labels={labels} words="one scale" />}>
        <Curves
          label={`${label} of A and B over steps`} curves={curves} height={HEIGHT} log={isLog} mark={mark}
          onPick={pick} range={range}
        />
      </Section>
      <Section
        title={isCount ? "A − B over training" : "A ÷ B over training"}
        aside={isSame ? `B is step ${shown[1].step}` : isCount ? "0: equal" : "×1: equal"}
      >
        {divided
          ? <Curves
              label={`${label}, ${isCount ? "A − B" : "A ÷ B"}, over steps`} curves={[divided]} height={HEIGHT}
              log={!isCount} mark={mark} onPick={pick} range={range}
            />
          : <Why text="A and B have no recorded step in common: choose a step of each above." />}
      </Section>
    </>
  );
}

/** Which colour is whose. */
export function Sides({ labels, words }: { readonly labels: Pair<string>; readonly words: string }) {
  return (
    <span className="compare-key">
      <i className="key-line a" /> A {labels[0]} <i className="key-line b" /> B {labels[1]}
      <span>{words}</span>
    </span>
  );
}

/** Both ends, so that the two charts beside each other have one axis. */
function rangeOf(curves: readonly Curve[]): Range | undefined {
  const ends = curves.flatMap(({ x }) => (x.length ? [x[0], x[x.length - 1]] : []));
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return low < high ? [low, high] : undefined;
}

/** Step by step where both have one; against one step of B if both are the same curve. */
function dividedCurve(
  a: SeriesTable | null, b: SeriesTable | null, statistic: string, isShare: boolean, step: number | null,
): Curve | null {
  if (!a || !b) return null;
  const [own, others] = [a.values[statistic], b.values[statistic]];
  if (!own || !others) return null;
  const at = new Map(Array.from(b.steps, (number, i) => [number, others[i]]));
  const x: number[] = [];
  const y: number[] = [];
  a.steps.forEach((number, i) => {
    const reference = at.get(step ?? number);
    if (reference === undefined || Number.isNaN(reference) || Number.isNaN(own[i])) return;
    const value = against(own[i], reference, isShare);
    x.push(number);
    y.push(isShare ? value : quotient(value));
  });
  return x.length ? { label: isShare ? "A − B" : "A ÷ B", color: "var(--ink)", x, y } : null;
}

/** From its logarithm; what is beyond every ratio has no place on the axis, and the chart says how often. */
function quotient(log: number): number {
  if (Math.abs(log) < BEYOND) return 10 ** log;
  return log < 0 ? 0 : Infinity;
}

interface BarsProps {
  readonly a: Distribution;
  readonly b: Distribution;
}

export function BarsSection({ a, b }: BarsProps) {
  const theme = useTheme();
  const [canvas, plot] = useCanvas((element) => new DifferenceBars(element));
  useEffect(() => plot.current?.set({ a, b, theme }), [plot, a, b, theme]);
  return (
    <Section title="A − B, share in each bar">
      <canvas
        ref={canvas}
        className="canvas"
        style={{ height: HEIGHT - 20 }}
        role="img"
        aria-label="A minus B in each bar of the histograms"
      />
    </Section>
  );
}

/** `0.0545 ÷ 0.359 is ×0.15`. */
export const dividedText = (value: number, isShare: boolean): string =>
  isShare ? pointsText(value) : ratioText(value);
