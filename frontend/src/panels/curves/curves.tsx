/**
 * Curves over steps or time: the one plot that the scrubber, the selected tensor and the metrics share.
 *
 * Pointer: hover reads values, click picks, dragging zooms (double click: everything again) or, with `drag="pick"`,
 * picks continuously. Keys: left and right walk from point to point, Home and End, Enter picks, Escape ends the zoom.
 * Pass the same arrays again while nothing has changed: then nothing is drawn anew.
 */
import { useCallback, useId, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import "uplot/dist/uPlot.min.css";
import { shortNumber } from "../../model/numbers";
import { NumberText } from "../../ui/number";
import { Tooltip } from "../../ui/tooltip";
import { placeText } from "./axes";
import { extent, nearestPoint, neighbour, readings, type Curve, type Reading } from "./data";
import { CurvePlot, type Background } from "./plot";
import { axisNote, emptySentence, leftOutNote, summary } from "./sentences";
import { sharedCursor, type SharedCursor } from "./shared_cursor";
import { usePicking } from "./use_picking";
import { withoutOutliers, type Range } from "./value_range";
import "./curves.css";

export type { Curve } from "./data";
export type { Area, Background } from "./plot";
export type { Range } from "./value_range";

export interface CurvesProps {
  readonly curves: readonly Curve[];
  readonly height: number;
  readonly log?: boolean;
  /** With "time", x counts seconds since some beginning. */
  readonly x?: "step" | "time";
  /** Where the vertical line is. */
  readonly mark?: number;
  /** Where the user clicked, as it is on the axis: nobody has snapped it to a point. `dragging`: more is to come. */
  readonly onPick?: (x: number, dragging: boolean) => void;
  /** No axes, no notes: the scrubber. */
  readonly quiet?: boolean;
  /** Drawn below the curves, in pixels of the page. */
  readonly background?: Background;
  /** First and last x; without it, all points are in view. */
  readonly range?: Range;
  /** Several plots zoom together: give this and `range`. Without it the plot zooms by itself. */
  readonly onZoom?: (range: Range | null) => void;
  /** Given to several plots: what one of them points at, all point at. */
  readonly cursor?: SharedCursor;
  /** The axis of values goes from the 2nd to the 98th percentile of those in view. */
  readonly ignoreOutliers?: boolean;
  /** Owner of the curves that stand out. */
  readonly highlight?: string | null;
  /** Default: "zoom", or "pick" if quiet. */
  readonly drag?: "zoom" | "pick";
  /** What it shows: for screen readers and tests. */
  readonly label: string;
}

interface Pointed {
  readonly x: number;
  readonly at: { readonly x: number; readonly y: number };
  readonly byKey: boolean;
}

export function Curves(props: CurvesProps) {
  const { curves, height, log = false, x = "step", mark, onPick, quiet = false, background, range, label } = props;
  const drag = props.drag ?? (quiet ? "pick" : "zoom");
  const { ignoreOutliers = false, highlight = null } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<CurvePlot>(null);
  const [ownZoom, setOwnZoom] = useState<Range | null>(null);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const onZoom = useRef<(range: Range | null) => void>(setOwnZoom);
  onZoom.current = props.onZoom ?? setOwnZoom;
  const status = useId();
  const own = useMemo(sharedCursor, []);
  const cursor = props.cursor ?? own;

  useLayoutEffect(() => {
    const made = new CurvePlot(host.current as HTMLDivElement, {
      hover: (place, at) => {
        cursor.point(place, host);
        setPointed(place === null ? null : { x: place, at, byKey: false });
      },
      zoom: (chosen) => onZoom.current(chosen),
    });
    plot.current = made;
    const stop = cursor.listen((by) => by !== host && made.point(cursor.place()));
    return () => {
      stop();
      made.close();
    };
  }, [cursor]);
  const shownRange = (props.onZoom ? undefined : ownZoom) ?? range ?? null;
  const middle = useMemo(
    () => (ignoreOutliers ? withoutOutliers(curves, log, shownRange) : null),
    [curves, log, shownRange, ignoreOutliers],
  );
  const limits = middle?.axis ?? null;
  useLayoutEffect(() => {
    plot.current?.set({
      curves, height, log, x, quiet, mark: mark ?? null, range: shownRange, background: background ?? null,
      zoomable: drag === "zoom", limits, highlight,
    });
  }, [cursor, curves, height, log, x, quiet, mark, shownRange, background, drag, limits, highlight]);
  usePicking(host, plot, drag, onPick);

  const placeKey = useCallback((next: number | null) => {
    cursor.point(next, host);
    if (next === null) return setPointed(null);
    const at = plot.current?.point(next) ?? { x: 0, y: 0 };
    setPointed({ x: next, at, byKey: true });
  }, [cursor]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const ends = extent(curves);
    const here = pointed?.x ?? mark ?? ends?.[0];
    if (!ends || here === undefined) return;
    const keys: Record<string, () => void> = {
      ArrowLeft: () => placeKey(neighbour(curves, here, -1, log) ?? here),
      ArrowRight: () => placeKey(neighbour(curves, here, 1, log) ?? here),
      Home: () => placeKey(ends[0]),
      End: () => placeKey(ends[1]),
      Enter: () => onPick?.(nearestPoint(curves, here), false),
      Escape: () => (pointed ? placeKey(null) : onZoom.current(null)),
    };
    if (!(event.key in keys)) return;
    keys[event.key]();
    event.preventDefault();
    event.stopPropagation();
  };

  const read = pointed && !(quiet && curves.length === 0) ? readings(curves, pointed.x) : [];
  const nothing = useMemo(() => (quiet ? null : emptySentence(curves, log)), [curves, log, quiet]);
  const leftOut = useMemo(() => (quiet || nothing ? "" : leftOutNote(curves, log)), [curves, log, quiet, nothing]);
  const note = [middle && axisNote(middle), leftOut].filter(Boolean).join(" · ");
  const said = useMemo(() => nothing ?? summary(curves, x), [curves, x, nothing]);
  return (
    <div
      className={`curves${onPick ? " pickable" : ""}${drag === "pick" ? " handle" : ""}`}
      style={{ height }}
      role="group"
      aria-label={label}
      aria-describedby={status}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onBlur={() => placeKey(null)}
    >
      <div ref={host} style={{ visibility: nothing ? "hidden" : undefined }} />
      {nothing && <div className="curves-nothing">{nothing}</div>}
      {note && <div className="curves-note">{note}</div>}
      <p id={status} role="status" className="visually-hidden">
        {pointed?.byKey ? spoken(read, pointed.x, x) : said}
      </p>
      {pointed && read.length > 0 && (
        <Tooltip at={pointed.at}>
          <Readout read={read} place={pointed.x} axis={x} />
        </Tooltip>
      )}
    </div>
  );
}

const spoken = (read: readonly Reading[], place: number, axis: "step" | "time"): string =>
  `${placeText(place, axis)}: ${read.map((r) => `${r.curve.label} ${shortNumber(r.value ?? NaN)}`).join(", ")}`;

const MOST_ROWS = 14;

function Readout({ read, place, axis }: { read: readonly Reading[]; place: number; axis: "step" | "time" }) {
  // Curves that are drawn faintly repeat others.
  const rows = read.filter((reading) => !reading.curve.faint);
  const nearest = nearestPoint(rows.map((row) => row.curve), place);
  return (
    <table className="curves-readout">
      <caption>{placeText(nearest, axis)}</caption>
      <tbody>
        {rows.slice(0, MOST_ROWS).map(({ curve, value, x }, i) => (
          <tr key={i}>
            <th>
              <i className={curve.dashed ? "curves-line dashed" : "curves-line"} style={{ borderColor: curve.color }} />
              {curve.label}
              {x !== nearest && <span className="label"> at {placeText(x, axis)}</span>}
            </th>
            <td>
              <NumberText value={value} />
            </td>
          </tr>
        ))}
        {rows.length > MOST_ROWS && (
          <tr>
            <th colSpan={2}>… and {rows.length - MOST_ROWS} more</th>
          </tr>
        )}
      </tbody>
    </table>
  );
}
