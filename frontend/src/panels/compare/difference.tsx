/** A against B: statistics, histograms over each other, curves, and values subtracted where shapes agree. */
import { useMemo, useState } from "react";
import type { Compared } from "../../model/differences";
import { percent, shortNumber, wholeNumber } from "../../model/numbers";
import { eitherOf, statisticName, statisticNamed } from "../../model/statistics";
import { adaptChoice, defaultChoice, type SliceChoice } from "../../model/slices";
import { useSeriesOf, useStatistics, type Statistic, type TensorKey } from "../../state/data";
import { act, usePart } from "../../state/page";
import { NumberText } from "../../ui/number";
import { Section } from "../../ui/parts";
import { Curves, type Curve } from "../curves/curves";
import { Distribution } from "../tensor/distribution";
import { distributionOf } from "../tensor/histogram_words";
import { curvesOf } from "../tensor/time_series";
import { useTogether, type TensorFacts, type TensorView } from "../tensor/use_tensor";
import { Values } from "../tensor/values";
import { axisNames, rawChoice, wishOf } from "../tensor/values_choice";
import { Why, Words } from "../tensor/words";
import { comparedNumbers, sideNames, valuesDifference, type Side } from "./sides";

interface Props {
  readonly a: TensorView;
  readonly b: TensorView;
}

const sideOf = ({ shown, facts, samples, raw, units }: TensorView): Side => ({
  shown, number: facts?.number ?? null, samples: samples.value, raw: raw.value, units: units.value,
});

const isPending = ({ step, samples, raw, units }: TensorView): boolean =>
  step.pending || samples.pending || raw.pending || units.pending;

export function DifferenceColumn({ a, b }: Props) {
  const now = { a, b, left: sideOf(a), right: sideOf(b) };
  // Numbers of two sides must be of the same moment, or their difference means nothing.
  const whole = useTogether(now, !isPending(a) && !isPending(b));
  const known = eitherOf(useStatistics(whole.left.shown.trial), useStatistics(whole.right.shown.trial));
  const names = useMemo(() => sideNames(whole.left.shown, whole.right.shown), [whole.left.shown, whole.right.shown]);
  if (!whole.a.facts || !whole.b.facts) {
    return <Why text={`There is nothing to subtract: ${whole.a.facts ? "B" : "A"} shows no tensor.`} />;
  }
  const labels: [string, string] = [`A: ${names[0] || "the same"}`, `B: ${names[1] || "the same"}`];
  return (
    <section className="difference" aria-label="Difference A − B">
      <header className="section">
        <h2>A − B</h2>
        <p className="label wrap">{labels[0]}<br />{labels[1]}</p>
      </header>
      <Section title="statistics, A − B">
        <NumbersTable rows={comparedNumbers(whole.left, whole.right, known)} known={known} />
      </Section>
      <Distribution
        title="histograms"
        distribution={distributionOf(whole.a.facts)}
        other={distributionOf(whole.b.facts)}
        names={labels}
        mean={NaN}
        left={0}
        areSides
      />
      {whole.a.key && whole.b.key && (
        <BothCurves
          keys={[whole.a.key, whole.b.key]}
          types={[whole.left.shown.type, whole.right.shown.type]}
          labels={labels}
          known={known}
        />
      )}
      <ValuesPart left={whole.left} right={whole.right} facts={whole.a.facts} />
    </section>
  );
}

function NumbersTable({ rows, known }: { readonly rows: readonly Compared[]; readonly known: readonly Statistic[] }) {
  return (
    <table className="difference-table">
      <thead>
        <tr>
          <th scope="col">statistic</th>
          <th scope="col"><b className="side-a">A</b></th>
          <th scope="col"><b className="side-b">B</b></th>
          <th scope="col">A − B</th>
          <th scope="col" title="how much larger A is than B">A vs. B</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name} className={row.difference === 0 ? "same" : undefined}>
            <th scope="row">{statisticName(row.name, known)}</th>
            <td><NumberText value={row.a} text={textOf(row.name, row.a)} /></td>
            <td><NumberText value={row.b} text={textOf(row.name, row.b)} /></td>
            <td><NumberText value={row.difference} text={row.difference === 0 ? "0" : undefined} /></td>
            <td><NumberText value={row.ratio} text={ratioText(row.ratio)} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const textOf = (name: string, value: number | null): string | undefined =>
  value !== null && statisticNamed(name).isCount ? wholeNumber(value) : undefined;

/** Near one, percents say more: +3.2 %. Far from it, factors: × 12. */
function ratioText(ratio: number | null): string | undefined {
  if (ratio === null) return undefined;
  if (ratio === 1) return "0 %";
  if (Math.abs(ratio - 1) < 1e-3) return "< 0.1 %";
  if (ratio > 2 || ratio < 0.5) return `× ${shortNumber(ratio, 2)}`;
  return `${ratio >= 1 ? "+" : ""}${percent(Number((ratio - 1).toPrecision(2)))}`;
}

type Pair<T> = readonly [T, T];

interface CurvesProps {
  readonly keys: Pair<TensorKey>;
  /** Of the steps that are shown: only such steps are on the curves. */
  readonly types: Pair<string | null>;
  readonly labels: Pair<string>;
  readonly known: readonly Statistic[];
}

const COLORS = ["var(--kind-computed)", "var(--kind-parameter)"];

/** Only if the sides have different curves: two steps of one type lie on the same one. */
function BothCurves({ keys, types, labels, known }: CurvesProps) {
  const series = usePart((page) => page.series);
  const isSame = types[0] === types[1] && JSON.stringify(keys[0]) === JSON.stringify(keys[1]);
  const loaded = useSeriesOf(isSame ? [] : keys, [series.statistic]);
  const now = { values: loaded.values, statistic: series.statistic, labels, types };
  const { values, statistic, ...sides } = useTogether(now, !loaded.pending);
  const key = [...sides.labels, ...sides.types].join("\n");
  const curves = useMemo<Curve[]>(
    () => values.flatMap((table, i) =>
      curvesOf([{ trial: "", color: COLORS[i], table }], statistic, sides.types[i]).map((curve) => ({
        ...curve, label: sides.labels[i], dashed: i > 0,
      })),
    ),
    [values, statistic, key],
  );
  if (isSame) return null;
  const name = statisticName(statistic, known);
  return (
    <Section title={`over training · ${name}`}>
      <Curves label={`${name} of A and B over steps`} curves={curves} height={150} log={series.log} />
    </Section>
  );
}

const NO_SHAPE: readonly number[] = [];

interface ValuesPartProps {
  readonly left: Side;
  readonly right: Side;
  readonly facts: TensorFacts;
}

function ValuesPart({ left, right, facts: { batchDim, shape: { length: rank } } }: ValuesPartProps) {
  const values = usePart((page) => page.values);
  const { aggregate } = left.shown;
  const { found, title, note } = useMemo(
    () => valuesDifference(left, right, aggregate),
    [left.raw, right.raw, left.units, right.units, left.shown, right.shown, aggregate],
  );
  const [wish, setWish] = useState<SliceChoice>(() => defaultChoice([]));
  const shape = found?.shape ?? NO_SHAPE;
  // Of the same rank as the values of A and B, it is cut in the same way; else it has a choice of its own.
  const isShared = shape.length === rank;
  const choice = useMemo(
    () => (isShared ? rawChoice(shape, values, -1) : adaptChoice(wish, shape)),
    [isShared, values, wish, shape],
  );
  const change = (next: SliceChoice, transient: boolean): void =>
    isShared ? act.page({ values: { ...values, ...wishOf(shape, next, -1) } }, { transient }) : setWish(next);
  const samples = found?.samples ?? null;
  const placeName = (axis: number, place: number): string =>
    axis === 0 && samples ? String(samples[place] ?? place) : String(place);
  const names = axisNames(rank, batchDim, samples !== null || batchDim >= 0);
  return (
    <Section title={title}>
      {found && (
        <Values
          label="Difference of values"
          data={found.data}
          shape={found.shape}
          names={names.slice(names.length - found.shape.length)}
          choice={choice}
          onChoice={change}
          placeName={placeName}
          show={values.show}
          diverging
          height={240}
        />
      )}
      {note && <p className="why"><Words text={note} /></p>}
    </Section>
  );
}
