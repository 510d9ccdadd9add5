/** The loss above the rows, in the same columns; a click or a drag chooses the step. */
import { useEffect, useMemo, useState, type KeyboardEvent, type PointerEvent } from "react";
import type { Finding } from "../../api/types";
import { LayersCurve, extentOf } from "../../draw/layers_curve";
import { columnAt, type StepAxis } from "../../model/layers/axis";
import { shortNumber } from "../../model/numbers";
import { useMetricsOf } from "../../state/data";
import { act } from "../../state/page";
import { Tooltip } from "../../ui/tooltip";
import { useCanvas } from "../../ui/use_canvas";
import { lossName } from "../shell/facts";
import type { LayersData } from "./use_layers";

interface Props {
  readonly data: LayersData;
  readonly axis: StepAxis;
  readonly left: number;
  readonly column: number;
  readonly findings: readonly Finding[];
}

export function Curve({ data, axis, left, column, findings }: Props) {
  const { trial, described, steps } = data;
  const name = lossName(described);
  const names = useMemo(() => (name === null ? [] : [name]), [name]);
  const trials = useMemo(() => (trial === null ? [] : [trial]), [trial]);
  const curve = useMetricsOf(trials, names).values[0]?.curves.get(name ?? "");
  const [canvas, paint] = useCanvas((element) => new LayersCurve(element));
  const [hover, setHover] = useState<{ x: number; y: number; column: number } | null>(null);
  const onsets = useMemo(
    () => findings.map(({ firstStep, severity }) => ({ step: firstStep, severity })), [findings],
  );
  useEffect(() => {
    paint.current?.set({
      axis, left, right: left + axis.width, steps: curve?.steps ?? [], values: curve?.values ?? [], onsets, column,
    });
  }, [axis, left, curve, onsets, column, paint]);
  const extent = useMemo(() => extentOf(curve?.values ?? []), [curve]);
  const at = (event: PointerEvent): number =>
    columnAt(axis, event.clientX - event.currentTarget.getBoundingClientRect().left - left);
  const choose = (place: number, transient: boolean): void => {
    const step = steps[place];
    if (step) act.choose({ step: step.number, stepType: sameNumber(steps, place) ? step.type : null }, { transient });
  };
  const keys = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -1e9, End: 1e9 }[event.key];
    if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    choose(Math.min(steps.length - 1, Math.max(0, column + by)), false);
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = steps[column];
  const loss = (step: number): string => {
    const place = curve ? Array.prototype.indexOf.call(curve.steps, step) : -1;
    return place < 0 ? "" : ` · ${name} ${shortNumber(curve?.values[place] as number)}`;
  };
  return (
    <div
      className="layers-curve"
      role="slider"
      tabIndex={0}
      aria-label="Step"
      aria-valuemin={steps[0]?.number ?? 0}
      aria-valuemax={steps[steps.length - 1]?.number ?? 0}
      aria-valuenow={shown?.number ?? 0}
      aria-valuetext={shown ? `step ${shown.number}${loss(shown.number)}` : "no recorded step"}
      onKeyDown={keys}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        choose(at(event), true);
      }}
      onPointerMove={(event) => {
        const place = at(event);
        setHover({ x: event.clientX, y: event.clientY, column: place });
        if (event.buttons & 1) choose(place, true);
      }}
      onPointerUp={(event) => choose(at(event), false)}
      onPointerLeave={() => setHover(null)}
    >
      <span className="layers-curve-name" style={{ width: left - 10 }}>
        {name ?? "no metric"}
        {curve && <span className="number">{shortNumber(extent.low, 2)} … {shortNumber(extent.high, 2)}</span>}
        <span className="layers-curve-steps">recorded steps</span>
      </span>
      <canvas ref={canvas} className="layers-curve-canvas" aria-hidden="true" />
      <span className="layers-curve-step" aria-hidden="true">
        at step <b className="number">{shown?.number ?? "–"}</b>
      </span>
      <Tooltip at={hover}>
        {hover && steps[hover.column] && `step ${steps[hover.column].number}${loss(steps[hover.column].number)}`}
      </Tooltip>
    </div>
  );
}

/** Whether several steps have this number: then its type has to be said. */
export function sameNumber(steps: LayersData["steps"], place: number): boolean {
  const { number } = steps[place];
  return steps[place - 1]?.number === number || steps[place + 1]?.number === number;
}
