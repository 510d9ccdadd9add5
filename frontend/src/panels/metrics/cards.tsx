/** Plots of metrics: a small one for each, a large one for those that were chosen. */
import { memo, useDeferredValue, useMemo, useSyncExternalStore } from "react";
import { shortNumber } from "../../model/numbers";
import { act, usePart } from "../../state/page";
import { useMetricsOf } from "../../state/data";
import { NumberText } from "../../ui/number";
import { Button, Empty } from "../../ui/parts";
import { placeText } from "../curves/axes";
import { Curves, type Range } from "../curves/curves";
import type { SharedCursor } from "../curves/shared_cursor";
import { useSeen, useWork, Waiting } from "../tab_panel";
import { Legend } from "./legend";
import { lastValues, overlay, plotOf, valuesAt, type Plot, type TrialMetrics } from "./plots";

/** What all plots have in common. */
export interface Frame {
  readonly trials: readonly { readonly name: string; readonly color: string; readonly start: number }[];
  readonly types: readonly string[];
  readonly mark: number | undefined;
  /** Pixels of a small plot. */
  readonly height: number;
  readonly range: Range | null;
  /** What one of them points at, all point at. */
  readonly cursor: SharedCursor;
  /** The trial whose curves stand out. */
  readonly highlight: string | null;
  readonly onPick: (x: number) => void;
  readonly onZoom: (range: Range | null) => void;
}

const OVERLAY_HEIGHT = 340;

function useTables(frame: Frame, names: readonly string[]) {
  const loaded = useMetricsOf(useMemo(() => frame.trials.map(({ name }) => name), [frame.trials]), names);
  const trials = useMemo(
    () => frame.trials.flatMap(({ name, color, start }, i): TrialMetrics[] => {
      const table = loaded.values[i];
      return table ? [{ trial: name, color, start, table }] : [];
    }),
    [frame.trials, loaded],
  );
  return { trials, problem: loaded.problem, pending: loaded.pending };
}

/** The slider moves at once, the curves as soon as they can. */
function useDeferredSmoothing(): number {
  const { smoothing } = usePart((page) => page.metrics);
  const deferred = useDeferredValue(smoothing);
  useWork(smoothing !== deferred);
  return deferred;
}

export const MetricCard = memo(function MetricCard({ name, frame }: { readonly name: string; readonly frame: Frame }) {
  const metrics = usePart((page) => page.metrics);
  const { x, names, hidden } = metrics;
  const smoothing = useDeferredSmoothing();
  const [card, seen] = useSeen<HTMLElement>();
  const wanted = useMemo(() => (seen ? [name] : []), [name, seen]);
  const { trials, problem, pending } = useTables(frame, wanted);
  const { types } = frame;
  const plot = useMemo(
    () => plotOf(name, trials, types, { smoothing, x, hidden }),
    [name, trials, types, smoothing, x, hidden],
  );
  const chosen = names.includes(name);
  const choose = (): void => {
    const next = chosen ? names.filter((other) => other !== name) : [...names, name];
    act.page({ metrics: { ...metrics, names: next } });
  };
  return (
    <section ref={card} className={chosen ? "metric-card chosen" : "metric-card"} aria-label={`Metric ${name}`}>
      <header>
        <h3 title={name}>{name}</h3>
        <Values plot={plot} cursor={frame.cursor} />
        <Button
          plain
          pressed={chosen}
          label={chosen ? `Take ${name} out of the large plot` : `Show ${name} in the large plot`}
          onClick={choose}
        >
          {chosen ? "−" : "+"}
        </Button>
      </header>
      {problem ? (
        <Empty>{problem}</Empty>
      ) : (
        <MetricPlot plot={plot} frame={frame} height={frame.height} label={name} pending={pending || !seen} />
      )}
    </section>
  );
});

interface PlotProps {
  readonly plot: Plot;
  readonly frame: Frame;
  readonly height: number;
  readonly label: string;
  readonly pending: boolean;
}

function MetricPlot({ plot, frame, height, label, pending }: PlotProps) {
  const { log, x, outliers } = usePart((page) => page.metrics);
  if (pending && plot.curves.length === 0) {
    return <div style={{ height }}><Waiting what={label} /></div>;
  }
  if (plot.concealed && plot.curves.length === 0) {
    return (
      <div style={{ height }}>
        <Empty>Only hidden trials have values. A click in the legend shows them.</Empty>
      </div>
    );
  }
  return (
    <Curves
      curves={plot.curves}
      height={height}
      log={log}
      x={x}
      mark={frame.mark}
      range={frame.range ?? undefined}
      onZoom={frame.onZoom}
      cursor={frame.cursor}
      highlight={frame.highlight}
      ignoreOutliers={!outliers}
      onPick={frame.onPick}
      label={`${label} over ${x === "step" ? "steps" : "time"}`}
    />
  );
}

/** The newest values; while some plot is pointed at, those of this place. */
function Values({ plot, cursor }: { readonly plot: Plot; readonly cursor: SharedCursor }) {
  const { x } = usePart((page) => page.metrics);
  const place = useSyncExternalStore(cursor.listen, cursor.place);
  const pointed = useMemo(() => (place === null ? null : valuesAt(plot, place)), [plot, place]);
  const values = pointed?.values ?? lastValues(plot);
  const prefix = x === "time" ? "" : pointed?.exact ? "at " : "near ";
  const where = pointed ? prefix + placeText(pointed.place, x) : "";
  const all = values.map(({ label, value, range }) => `${label}: ${shortNumber(value)}${rangeText(range)}`).join("\n");
  return (
    <span className="metric-last" title={`${where || "newest values"}\n${all}`}>
      {where && <span className="label">{where}</span>}
      {values.slice(0, 4).map(({ label, color, value, range }) => (
        <span key={label}>
          {plot.curves.length > 1 && <i className="dot" style={{ background: color }} />}
          <NumberText value={value} />
          {values.length === 1 && range && <small>{rangeText(range)}</small>}
        </span>
      ))}
    </span>
  );
}

/** Of ranks, whose mean is shown. */
const rangeText = (range: readonly [number, number] | null): string =>
  range ? ` (${shortNumber(range[0])} … ${shortNumber(range[1])} over ranks)` : "";

export function MetricOverlay({ names, frame }: { readonly names: readonly string[]; readonly frame: Frame }) {
  const metrics = usePart((page) => page.metrics);
  const { x, hidden } = metrics;
  const smoothing = useDeferredSmoothing();
  const { trials, problem, pending } = useTables(frame, names);
  const { types } = frame;
  const plot = useMemo(
    () => overlay(names, trials, types, { smoothing, x, hidden }),
    [names, trials, types, smoothing, x, hidden],
  );
  return (
    <section className="metric-card metric-overlay" aria-label="Chosen metrics">
      <header>
        <h3 title={plot.name}>{plot.name}</h3>
        <span className="metric-last" />
        <Button plain label="Close the large plot" onClick={() => act.page({ metrics: { ...metrics, names: [] } })}>
          ×
        </Button>
      </header>
      {problem ? (
        <Empty>{problem}</Empty>
      ) : (
        <>
          <MetricPlot plot={plot} frame={frame} height={OVERLAY_HEIGHT} label={plot.name} pending={pending} />
          <Legend curves={plot.curves} label="Legend of the large plot" />
        </>
      )}
    </section>
  );
}
