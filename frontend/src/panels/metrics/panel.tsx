/** Everything that was logged, as curves. A click on a plot goes to the nearest recorded step. */
import { useCallback, useMemo, useState } from "react";
import { act, trialColor, usePart, useShown, useTrials } from "../../state/page";
import { summaryOf } from "../../model/ranks";
import { useCatalog, useTrialsOf, type Trial } from "../../state/data";
import { Empty } from "../../ui/parts";
import type { Range } from "../curves/curves";
import { FindingStrip } from "../findings/strip";
import { TabPanel, Waiting } from "../tab_panel";
import { MetricsBar } from "./bar";
import { sharedCursor } from "../curves/shared_cursor";
import { MetricCard, MetricOverlay, type Frame } from "./cards";
import { FEW, grouped, needHeadings, type Grouping } from "./groups";
import { Legend, TrialLegend } from "./legend";
import { nearestStep } from "./nearest_step";
import { typeStyle } from "./plots";
import "./metrics.css";

/** Stands in the address: a link shows the same part. */
const setZoom = (range: Range | null): void => act.metrics({ range });

export function Panel() {
  const metrics = usePart((page) => page.metrics);
  const { names: chosen, filter, group, hidden } = metrics;
  const trials = useTrials();
  const described = useTrialsOf(trials);
  const [pointed, setPointed] = useState<string | null>(null);
  const zoom = useMemo(() => (metrics.range?.length === 2 ? (metrics.range as Range) : null), [metrics.range]);
  const known = described.values.filter((trial) => trial !== null);
  const all = useMemo(() => [...new Set(known.flatMap((trial) => trial.metrics))], [described]);
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = all.filter((name) => words.every((word) => name.toLowerCase().includes(word)));
  const grouping = grouped(shown, group);
  const headed = needHeadings(grouping, group, all.length);
  const parts = headed ? grouping.groups : [{ title: "", names: shown }];
  const highlight = pointed !== null && hidden.includes(pointed) ? null : pointed;
  const frame = useFrame(trials, known, { height: heightOf(parts, all.length), zoom, highlight });
  const large = useMemo(() => chosen.filter((name) => all.includes(name)), [chosen, all]);
  const bar = (
    <>
      <MetricsBar
        count={all.length}
        problem={grouping.problem}
        zoomed={zoom !== null}
        onWhole={() => setZoom(null)}
      />
      <Legends frame={frame} onPoint={setPointed} />
    </>
  );
  return (
    <TabPanel label="Metrics" bar={all.length > 0 && bar}>
      <FindingStrip tab="metrics" />
      {all.length === 0 && <NoMetrics trials={trials} problem={described.problem} pending={described.pending} />}
      {large.length > 0 && <MetricOverlay names={large} frame={frame} />}
      {all.length > 0 && shown.length === 0 && (
        <Empty>None of the {all.length} metrics is called “{filter}”. Type another part of a name.</Empty>
      )}
      <Groups parts={parts} frame={frame} />
    </TabPanel>
  );
}

/** One takes all the room; two and four look best in two columns. */
function gridOf(count: number): string {
  if (count > FEW) return "metric-grid";
  return `metric-grid ${count === 1 ? "one" : count === 2 || count === 4 ? "pairs" : "few"}`;
}

const AROUND = 190; // pixels of the window that bars and margins take
const FRAME = 54; // pixels of a card that are not the plot

type Parts = Grouping["groups"];

/** Few of them share the height of the window. */
function heightOf(parts: Parts, count: number): number {
  if (count > FEW) return 150;
  const columns = innerWidth > 1040 ? 3 : 2;
  const rows = parts.reduce((sum, { names }) => sum + Math.ceil(names.length / columns), 0) || 1;
  const most = Math.max(360, innerHeight * 0.45);
  return Math.round(Math.min(Math.max((innerHeight - AROUND) / rows - FRAME, 200), most));
}

function Groups({ parts, frame }: { readonly parts: Parts; readonly frame: Frame }) {
  return parts.map(({ title, names }) => (
    <section key={title} aria-label={title ? `Group ${title}` : undefined}>
      {title && <h2 className="metric-heading">{title}</h2>}
      <div className={gridOf(names.length)}>
        {names.map((name) => <MetricCard key={name} name={name} frame={frame} />)}
      </div>
    </section>
  ));
}

interface Common {
  readonly height: number;
  readonly zoom: Range | null;
  readonly highlight: string | null;
}

/** Colours, beginnings, the mark and what a click does: the same for all plots, and the same object while it is. */
function useFrame(
  names: readonly string[], known: readonly Trial[], { height, zoom, highlight }: Common,
): Frame {
  const cursor = useMemo(sharedCursor, []);
  const { x } = usePart((page) => page.metrics);
  const { trial: main, step, ordinal } = useShown("a");
  const catalog = useCatalog().value;
  const starts = names.map((name) => summaryOf(name, catalog?.trials ?? [])?.created ?? 0).join();
  const trials = useMemo(() => {
    const start = starts.split(",").map(Number);
    return names.map((name, i) => ({ name, color: trialColor(name), start: start[i] }));
  }, [names, starts]);
  const typeNames = [...new Set(known.flatMap((trial) => trial.types))].join("\n");
  const types = useMemo(() => (typeNames ? typeNames.split("\n") : []), [typeNames]);
  const steps = known.find((trial) => trial.name === main)?.steps ?? null;
  const start = trials.find(({ name }) => name === main)?.start ?? 0;
  const at = steps && ordinal !== null ? steps.ordinal.indexOf(ordinal) : -1;
  const mark = x === "step" ? step ?? undefined : at >= 0 && steps ? steps.time[at] - start : undefined;
  const onPick = useCallback(
    (place: number) => {
      const number = steps && nearestStep(steps, place, x, start);
      if (number !== null) act.choose({ step: number });
    },
    [steps, x, start],
  );
  return useMemo(
    () => ({ trials, types, mark, height, range: zoom, cursor, highlight, onPick, onZoom: setZoom }),
    [trials, types, mark, height, zoom, cursor, highlight, onPick],
  );
}

/** Colours are trials, dashes and shades are types of step. Of one trial, all is in its colour. */
function Legends({ frame, onPoint }: { readonly frame: Frame; readonly onPoint: (trial: string | null) => void }) {
  const none = new Float64Array();
  const color = frame.trials.length === 1 ? frame.trials[0].color : "var(--ink-soft)";
  const types = frame.types.map((type, i) => ({ label: type, ...typeStyle(color, i), x: none, y: none }));
  return (
    <>
      {frame.trials.length > 1 && <TrialLegend trials={frame.trials} onPoint={onPoint} />}
      {types.length > 1 && <Legend curves={types} label="Types of step" />}
    </>
  );
}

interface NoneProps {
  readonly trials: readonly string[];
  readonly problem: string | null;
  readonly pending: boolean;
}

function NoMetrics({ trials, problem, pending }: NoneProps) {
  if (problem) return <Empty>{problem}</Empty>;
  if (pending) return <Waiting what="metrics" />;
  if (trials.length === 0) return <Empty>There is no trial to show: record one with endoscope.Run.</Empty>;
  return (
    <Empty>
      {trials.length === 1 ? `Trial ${trials[0]} has` : "These trials have"} no metrics yet. Log some while
      training: <code>run.metric("loss", loss)</code>.
    </Empty>
  );
}
