/** One statistic over all recorded steps, per trial and type of step, and the histogram over steps below it. */
import { memo, useMemo, useState } from "react";
import { columnEdges } from "../../draw/histogram_time";
import { QUANTILES } from "../../model/density";
import { SAMPLE_STATISTICS, statisticName } from "../../model/statistics";
import { useHistograms, useSeriesOf, useStatistics, type Statistic, type TensorKey } from "../../state/data";
import { act, trialColor, usePart, useTrials, type Page, type Pane, type Shown } from "../../state/page";
import { Button, Section } from "../../ui/parts";
import { Select } from "../../ui/select";
import { Curves, type Curve, type Range } from "../curves/curves";
import { TimePicture } from "./time_picture";
import { curvesOf, nearestStep, statisticsFor, timeHistograms, type TimeHistograms } from "./time_series";
import { useTogether } from "./use_tensor";
import { Why } from "./words";

interface Props {
  readonly pane: Pane;
  readonly shown: Shown;
  readonly tensor: TensorKey;
  /** A single number has itself and no other statistic. */
  readonly isScalar: boolean;
  /** The same of another tensor, as far as that is known. */
  readonly isScalarToo: (key: TensorKey, sample: number | null) => boolean;
  /** Its elements are whole numbers. */
  readonly isWhole: boolean;
  /** Of how many ranks it is put together. */
  readonly pieces: number;
}

const ONE: readonly string[] = ["mean"];

const namesOf = (isScalar: boolean, sample: number | null, known: readonly Statistic[]): readonly string[] =>
  isScalar ? ONE : sample === null ? known.map(({ name }) => name) : SAMPLE_STATISTICS;

/** What was chosen, as far as there is such a statistic. */
const statisticOf = (wanted: string, names: readonly string[]): string =>
  names.includes(wanted) ? wanted : names === ONE ? "mean" : "std";

export function OverTime({ pane, shown, tensor, isScalar, isScalarToo, isWhole, pieces }: Props) {
  const series = usePart((page) => page.series);
  const type = usePart((page) => (pane === "b" && "type" in page.other ? page.other.type : page.look.type) ?? null);
  const known = useStatistics(tensor.trial);
  const names = namesOf(isScalar, shown.sample, known);
  const statistic = statisticOf(series.statistic, names);
  const others = (key: TensorKey, sample: number | null): readonly string[] =>
    statisticsFor(statisticOf(series.statistic, namesOf(isScalarToo(key, sample), sample, known)));
  const { curves, steps, missing } = useCurves(tensor, statistic, type, shown.sample, others);
  const histograms = useTimeHistograms(series.histogram && !isScalar ? tensor : null, type);
  const [zoom, setZoom] = useState<Range | null>(null);
  const range = useMemo(() => zoom ?? wholeRange(curves, histograms), [zoom, curves, histograms]);
  const pick = (place: number): void => {
    const step = nearestStep(steps, place);
    if (step !== null) act.choose({ step }, { pane });
  };
  return (
    <Section
      title={shown.sample === null ? "over training" : `over training · sample ${shown.sample}`}
      aside={<Choices {...{ statistic, names, known, series, isScalar }} />}
    >
      <Curves
        label={`${statisticName(statistic, known)} of ${tensor.node} over steps`}
        curves={curves}
        height={150}
        log={series.log}
        mark={shown.step ?? undefined}
        onPick={pick}
        range={range ?? undefined}
        onZoom={setZoom}
      />
      <Key curves={curves} />
      {pieces > 1 && shown.sample === null && QUANTILES.some(([name]) => name === statistic) && (
        <p className="label wrap">≈ read off the histograms of {pieces} ranks together, to within one bin</p>
      )}
      {missing.length > 0 && <p className="label wrap">Not recorded in {missing.join(", ")}.</p>}
      {histograms && histograms.steps.length > 0 && (
        <TimePicture
          histograms={histograms}
          step={shown.step}
          range={range}
          isWhole={isWhole}
          isSample={shown.sample !== null}
          onPick={pick}
        />
      )}
      {histograms?.steps.length === 0 && <Why text="No recorded step has a finite element: there are no histograms." />}
    </Section>
  );
}

/** Shows nothing: has what will be drawn asked for while it is not yet known what kind of tensor it is. */
export function OverTimeAhead({ tensor }: { readonly tensor: TensorKey }) {
  const series = usePart((page) => page.series);
  useSeriesOf([tensor], statisticsFor(series.statistic));
  useSeriesOf([tensor], ONE);
  useHistograms(series.histogram ? tensor : null);
  return null;
}

interface ChoicesProps {
  readonly statistic: string;
  readonly names: readonly string[];
  readonly known: readonly Statistic[];
  readonly series: Page["series"];
  readonly isScalar: boolean;
}

const Choices = memo(function Choices({ statistic, names, known, series, isScalar }: ChoicesProps) {
  const set = (part: Partial<Page["series"]>): void => act.page({ series: { ...series, ...part } });
  return (
    <span className="controls">
      {!isScalar && (
        <Select
          quiet
          label="Statistic over training"
          value={statistic}
          choices={names.map((name) => ({ value: name, label: statisticName(name, known) }))}
          onChange={(name) => set({ statistic: name })}
        />
      )}
      <Button pressed={series.log} label="log axis" onClick={() => set({ log: !series.log })}>log</Button>
      {!isScalar && (
        <Button
          pressed={series.histogram}
          label="hist: histogram over steps"
          onClick={() => set({ histogram: !series.histogram })}
        >
          hist
        </Button>
      )}
    </span>
  );
});

/** Which line is which, if there are several. */
function Key({ curves }: { readonly curves: readonly Curve[] }) {
  if (curves.length < 2) return null;
  return (
    <div className="picture-key">
      {curves.map((curve, i) => (
        <span key={i}>
          <i className={curve.dashed ? "key-line dashed" : "key-line"} style={{ borderColor: curve.color }} />
          {curve.label}
        </span>
      ))}
    </div>
  );
}

const NO_STEPS = new Float64Array();

function useCurves(
  tensor: TensorKey, statistic: string, type: string | null, sample: number | null,
  others: (key: TensorKey, sample: number | null) => readonly string[],
) {
  const onPage = useTrials();
  const trials = useMemo(
    () => (onPage.includes(tensor.trial) ? onPage : [...onPage, tensor.trial]),
    [onPage, tensor.trial],
  );
  const keys = trials.map((trial) => ({ ...tensor, trial }));
  const loaded = useSeriesOf(keys, statisticsFor(statistic), sample === null ? {} : { sample }, others);
  const { values, pending } = loaded;
  // While some are on their way, those of before stay; a trial that has no such tensor never comes.
  const fresh = useMemo(() => ({ values, trials, statistic }), [values, trials, statistic]);
  const now = useTogether(fresh, !pending);
  return useMemo(() => {
    const all = now.trials.map((trial, i) => ({ trial, color: trialColor(trial), table: now.values[i] ?? null }));
    const own = all.find(({ trial }) => trial === tensor.trial)?.table;
    const rows = own?.types.flatMap((name, row) => (type === null || name === type ? [own.steps[row]] : []));
    return {
      curves: curvesOf(all, now.statistic, type),
      steps: rows ?? NO_STEPS,
      missing: all.filter(({ table }) => !table).map(({ trial }) => trial),
    };
  }, [now, type, tensor.trial]);
}

function useTimeHistograms(tensor: TensorKey | null, type: string | null): TimeHistograms | null {
  const { value } = useHistograms(tensor);
  return useMemo(() => value && timeHistograms(value, type), [value, type]);
}

/** From the first to the last recorded step, with half a step around if histograms are shown. */
function wholeRange(curves: readonly Curve[], histograms: TimeHistograms | null): Range | null {
  if (histograms && histograms.steps.length > 0) {
    const edges = columnEdges(histograms.steps);
    return [edges[0], edges[edges.length - 1]];
  }
  const ends = curves.flatMap(({ x }) => (x.length ? [x[0], x[x.length - 1]] : []));
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return low < high ? [low, high] : null;
}
