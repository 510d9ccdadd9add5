/** The scale of the colours: its ends are printed, and can be dragged; a double click fits them again. */
import type { KeyboardEvent, PointerEvent } from "react";
import { cssColor, mapOf, type Scheme } from "../../draw/color";
import type { HeatScale } from "../../model/heat";
import { moved, type End } from "../../model/heat_scale";

interface Props {
  readonly scale: HeatScale;
  readonly scheme: Scheme;
  readonly words: (value: number, digits: number) => string;
  /** Ends that somebody has chosen; null fits them again. `dragging`: more is to come. */
  readonly onRange: (range: readonly [number, number] | null, dragging: boolean) => void;
}

const WIDTH = 90; // pixels
const KEY_STEP = 5;

export function ScaleBar({ scale, scheme, words, onRange }: Props) {
  return (
    <>
      <Handle end="low" {...{ scale, words, onRange }} />
      <i className="ramp" style={{ background: gradient(scale, scheme) }} onDoubleClick={() => onRange(null, false)} />
      <Handle end="high" {...{ scale, words, onRange }} />
      {scale.kind === "log" && <span className="label">log</span>}
    </>
  );
}

function Handle({ end, scale, words, onRange }: Omit<Props, "scheme"> & { readonly end: End }) {
  const by = (pixels: number, dragging: boolean): void => onRange(moved(scale, end, pixels / WIDTH), dragging);
  const drag = (event: PointerEvent): void => {
    if (event.buttons & 1 && event.movementX !== 0) by(event.movementX, true);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === "ArrowLeft" || event.key === "ArrowDown") by(-KEY_STEP, false);
    else if (event.key === "ArrowRight" || event.key === "ArrowUp") by(KEY_STEP, false);
    else if (event.key === "Escape") onRange(null, false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const value = scale[end];
  return (
    <span
      className="number scale-end"
      role="slider"
      tabIndex={0}
      aria-label={`${end === "low" ? "Lowest" : "Highest"} colour`}
      aria-valuenow={value}
      aria-valuetext={words(value, 2)}
      title="Drag to choose the ends of the colours; double click on the colours: from the numbers themselves"
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onPointerUp={() => by(0, false)}
      onDoubleClick={() => onRange(null, false)}
      onKeyDown={keys}
    >
      {end === "low" ? "≤ " : "≥ "}
      {words(value, 2)}
    </span>
  );
}

function gradient(scale: HeatScale, scheme: Scheme): string {
  const colors = mapOf(scale.kind, scheme);
  const stops = Array.from({ length: 17 }, (_, i) => cssColor(colors[Math.round((i / 16) * 255)]));
  return `linear-gradient(to right, ${stops.join(",")})`;
}
