/** Trials against each other: parallel coordinates over the shown columns, or any two columns as a scatter. */
import { useEffect, useMemo, useState, type PointerEvent } from "react";
import { ParallelView, ScatterView, type ChartAxis, type ChartTrial } from "../../draw/trials_chart";
import { axisOf } from "../../model/overview/axis";
import { differences, type Column } from "../../model/overview/columns";
import { act, trialColor, usePart, useTrials } from "../../state/page";
import { Select } from "../../ui/select";
import { Tooltip } from "../../ui/tooltip";
import { useCanvas } from "../../ui/use_canvas";
import { resolvedColor } from "../curves/colors";
import { openTrial } from "./open_trial";
import { usualLoss, type TableRows } from "./use_rows";

export function Chart({ rows }: { readonly rows: TableRows }) {
  const kind = usePart((page) => page.overview.chart);
  return (
    <div className="overview-card overview-chart">
      {kind === "parallel" ? <Parallel rows={rows} /> : <Scatter rows={rows} />}
    </div>
  );
}

/** Columns that can be an axis: they have values, and not all the same. */
function axes(rows: TableRows, columns: readonly Column[]): ChartAxis[] {
  return columns
    .filter(({ id }) => !["name", "curve", "differs", "tags"].includes(id))
    .map((column) => axisOf(column.label, rows.trials.map((trial) => column.value(trial))))
    .filter((axis) => axis.different > 1);
}

/** Settings that differ, then the metrics that are shown. */
function axesByItself({ all, columns, trials }: TableRows): readonly Column[] {
  const differ = differences(trials).map(({ name }) => `config:${name}`);
  const settings = all.filter(({ id }) => differ.includes(id)).slice(0, 6);
  return [...settings, ...columns.filter(({ id, kind }) => kind === "number" && id !== "steps")];
}

function useTrialColors(rows: TableRows): readonly ChartTrial[] {
  const chosen = useTrials();
  return useMemo(
    () => rows.trials.map(({ name }) => ({
      name, color: resolvedColor(trialColor(name)), isChosen: chosen.length > 1 && chosen.includes(name),
    })),
    [rows.trials, chosen],
  );
}

function Parallel({ rows }: { readonly rows: TableRows }) {
  const trials = useTrialColors(rows);
  const found = useMemo(() => axes(rows, axesByItself(rows)), [rows]);
  const [canvas, paint] = useCanvas((element) => new ParallelView(element));
  useEffect(() => paint.current?.set(found, trials), [found, trials, paint]);
  const names = found.map(({ label }) => label).join(", ");
  return <Picture {...{ canvas, paint, trials }} label={`Parallel coordinates: ${names}`} />;
}

function Scatter({ rows }: { readonly rows: TableRows }) {
  const trials = useTrialColors(rows);
  const { x, y } = usePart((page) => page.overview);
  const possible = rows.all.filter(({ id, value }) =>
    !["name", "curve", "differs", "tags"].includes(id) && rows.trials.some((trial) => value(trial) !== null));
  const pick = (id: string, otherwise: (column: Column) => boolean): Column | undefined =>
    possible.find((column) => column.id === id) ?? possible.find(otherwise) ?? possible[0];
  const loss = `metric:${usualLoss(rows.trials)}`;
  const differ = differences(rows.trials).map(({ name }) => `config:${name}`);
  const [across, up] = [pick(x, ({ id }) => differ.includes(id)), pick(y, ({ id }) => id === loss)];
  const [canvas, paint] = useCanvas((element) => new ScatterView(element));
  useEffect(() => {
    if (!across || !up) return;
    const axis = (column: Column) => axisOf(column.label, rows.trials.map((trial) => column.value(trial)));
    paint.current?.set([axis(across), axis(up)], trials);
  }, [across, up, rows, trials, paint]);
  const choices = possible.map(({ id, label }) => ({ value: id, label }));
  return (
    <>
      <div className="overview-axes">
        <Select
          label="across" choices={choices} value={across?.id ?? ""}
          onChange={(id) => act.page({ overview: { x: id } })}
        />
        <Select
          label="up" choices={choices} value={up?.id ?? ""} onChange={(id) => act.page({ overview: { y: id } })}
        />
      </div>
      <Picture {...{ canvas, paint, trials }} label={`Scatter of ${up?.label} over ${across?.label}`} />
    </>
  );
}

interface PictureProps {
  readonly canvas: React.RefObject<HTMLCanvasElement | null>;
  readonly paint: React.RefObject<{ hit(x: number, y: number): number; point(place: number): void } | null>;
  readonly trials: readonly ChartTrial[];
  readonly label: string;
}

/** A trial below the pointer is named and drawn on top; a click leads into it. */
function Picture({ canvas, paint, trials, label }: PictureProps) {
  const [hover, setHover] = useState<{ x: number; y: number; place: number } | null>(null);
  const move = (event: PointerEvent): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const place = paint.current?.hit(event.clientX - box.left, event.clientY - box.top) ?? -1;
    paint.current?.point(place);
    setHover(place < 0 ? null : { x: event.clientX, y: event.clientY, place });
  };
  return (
    <>
      <canvas
        ref={canvas} className="canvas overview-picture" role="img" aria-label={label}
        onPointerMove={move}
        onPointerLeave={() => {
          paint.current?.point(-1);
          setHover(null);
        }}
        onClick={() => hover && void openTrial(trials[hover.place].name)}
      />
      <Tooltip at={hover}>{hover && trials[hover.place]?.name}</Tooltip>
    </>
  );
}
