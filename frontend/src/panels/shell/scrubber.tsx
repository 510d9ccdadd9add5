/** When: a handle over the recorded steps, drawn on top of the loss curves of the chosen trials. */
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import { shortNumber, wholeNumber } from "../../model/numbers";
import { useMetricsOf, useTrial, type Trial } from "../../state/data";
import { act, trialColor, useMainTrial, usePart, useShownPart, useTrials } from "../../state/page";
import { Tooltip } from "../../ui/tooltip";
import { useCanvas } from "../../ui/use_canvas";
import { lowerBound } from "../curves/thin";
import { Mark } from "../findings/mark";
import { useSpans } from "../findings/use_entries";
import { lossName } from "./facts";
import { MARGIN, ScrubberPaint, type ScrubberPicture, type ScrubberTick } from "./scrubber_paint";

/** Recorded steps that may be chosen, ascending; with a place in the columns of the trial. */
interface Stop {
  readonly number: number;
  readonly type: string;
}

function stopsOf(trial: Trial | null, type: string | null): Stop[] {
  if (!trial) return [];
  const { number, type: types } = trial.steps;
  const stops = number.map((step, i) => ({ number: step, type: trial.types[types[i]] }));
  return stops.filter((stop) => type === null || stop.type === type).sort((a, b) => a.number - b.number);
}

function ticksOf(trial: Trial | null, type: string | null): ScrubberTick[] {
  if (!trial) return [];
  const { number, type: types, raw } = trial.steps;
  return number.map((step, i) => ({
    step, fits: type === null || trial.types[types[i]] === type, raw: raw[i],
  }));
}

export function Scrubber() {
  const name = useMainTrial();
  const step = useShownPart("a", (shown) => shown.step);
  const type = useShownPart("a", (shown) => shown.type);
  const wantedType = usePart((page) => page.look.type);
  const names = useTrials();
  const trial = useTrial(name).value;
  const picture = usePicture(names, trial, wantedType);
  const stops = useMemo(() => stopsOf(trial, wantedType), [trial, wantedType]);
  const numbers = useMemo(() => stops.map((stop) => stop.number), [stops]);
  const [canvas, paint] = useCanvas((element) => new ScrubberPaint(element));
  useEffect(() => paint.current?.set(picture), [picture, paint]);
  const [hover, setHover] = useState<{ x: number; y: number; stop: Stop } | null>(null);
  const track = useRef<HTMLDivElement>(null);

  const stopAt = (event: PointerEvent): Stop | undefined => {
    const box = (track.current as HTMLDivElement).getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN) / Math.max(1, box.width - 2 * MARGIN);
    return stops[nearest(numbers, picture.from + share * (picture.to - picture.from))];
  };
  const drag = (event: PointerEvent): void => {
    const stop = stopAt(event);
    if (!stop) return;
    setHover({ x: event.clientX, y: event.clientY, stop });
    if (event.buttons & 1) act.choose({ step: stop.number }, { transient: true });
  };
  const press = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    drag(event);
  };
  const release = (event: PointerEvent): void => {
    const stop = event.button === 0 ? stopAt(event) : undefined;
    if (stop) act.choose({ step: stop.number });
  };
  const keys = (event: KeyboardEvent): void => {
    const by = STRIDES[event.key];
    if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    act.stepBy(by, false);
    event.preventDefault();
    event.stopPropagation();
  };

  const share = step === null ? null : (step - picture.from) / (picture.to - picture.from || 1);
  return (
    <div
      className="scrubber"
      ref={track}
      role="slider"
      tabIndex={0}
      aria-label="Training step"
      aria-valuemin={picture.from}
      aria-valuemax={picture.to}
      aria-valuenow={step ?? picture.from}
      aria-valuetext={step === null ? "no recorded step" : stepWords(step, type)}
      onPointerDown={press}
      onPointerMove={drag}
      onPointerUp={release}
      onPointerLeave={() => setHover(null)}
      onKeyDown={keys}
    >
      <canvas ref={canvas} className="scrubber-canvas" aria-hidden="true" />
      {picture.curves.length > 0 && <span className="scrubber-name" aria-hidden="true">{lossName(trial)}</span>}
      {share !== null && (
        <i className="scrubber-handle" style={{ left: `calc(${MARGIN}px + ${share} * (100% - ${2 * MARGIN}px))` }} />
      )}
      <Tooltip at={hover}>{hover && <Reading stop={hover.stop} picture={picture} />}</Tooltip>
    </div>
  );
}

const STRIDES: Readonly<Record<string, number>> = {
  ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -1e9, End: 1e9,
};

const stepWords = (step: number, type: string | null): string =>
  `step ${wholeNumber(step)}${type ? ` · ${type}` : ""}`;

/** The step below the pointer, and what the curves are there. */
function Reading({ stop, picture }: { readonly stop: Stop; readonly picture: ScrubberPicture }) {
  // What begins here, or so near that its mark is below the pointer.
  const near = ((picture.to - picture.from) / Math.max(1, innerWidth)) * 8;
  const found = picture.spans.filter(({ from }) => Math.abs(from - stop.number) <= near).slice(-4).reverse();
  return (
    <>
      {stepWords(stop.number, stop.type)}
      {picture.curves.map(({ label, color, steps, values }) => {
        const value = values[nearest(steps, stop.number)];
        return (
          <div key={label} className="scrubber-reading">
            <span className="dot" style={{ background: color }} />
            {label} <span className="number">{value === undefined ? "–" : shortNumber(value)}</span>
          </div>
        );
      })}
      {found.map(({ words, severity }) => (
        <div key={words} className="scrubber-reading"><Mark severity={severity} /> {words}</div>
      ))}
    </>
  );
}

/** Place of the number nearest to a value in ascending numbers; -1 if there is none. */
export function nearest(numbers: ArrayLike<number>, value: number): number {
  const after = lowerBound(numbers, value);
  if (after === 0) return numbers.length ? 0 : -1;
  if (after === numbers.length) return after - 1;
  return value - numbers[after - 1] <= numbers[after] - value ? after - 1 : after;
}

function usePicture(names: readonly string[], trial: Trial | null, type: string | null): ScrubberPicture {
  const spans = useSpans();
  const loss = lossName(trial);
  const wanted = useMemo(() => (loss === null ? [] : [loss]), [loss]);
  const metrics = useMetricsOf(names, wanted);
  return useMemo(() => {
    const curves = metrics.values.flatMap((table, place) => {
      const curve = loss === null ? undefined : table?.curves.get(loss);
      const label = names.length > 1 ? `${names[place]} · ${loss}` : (loss ?? "");
      return curve ? [{ label, steps: curve.steps, values: curve.values, color: trialColor(names[place]) }] : [];
    });
    const ticks = ticksOf(trial, type);
    const ends = [...ticks.map((tick) => tick.step)];
    for (const { steps } of curves) if (steps.length) ends.push(steps[0], steps[steps.length - 1]);
    const from = ends.reduce((least, step) => Math.min(least, step), Infinity);
    const to = ends.reduce((most, step) => Math.max(most, step), -Infinity);
    // The main trial is drawn last, on top of the others.
    const main = trialColor(trial?.name ?? "");
    const inOrder = [...curves.filter(({ color }) => color !== main), ...curves.filter(({ color }) => color === main)];
    const there = spans.filter((span) => span.from <= to && span.to >= from);
    const nothing = { curves: [], ticks: [], spans: [], from: 0, to: 1 };
    return from <= to ? { curves: inOrder, ticks, spans: there, from, to } : nothing;
  }, [metrics, trial, type, loss, names, spans]);
}
