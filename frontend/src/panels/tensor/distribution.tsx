/** The histogram of a tensor, with that of a sample or of another tensor over it. */
import { useEffect, useMemo, useState } from "react";
import { HistogramPlot, type SliceHit } from "../../draw/histogram";
import type { AxisKind } from "../../draw/histogram_axis";
import { total, type Histogram } from "../../model/histogram";
import { percent, shortNumber, wholeNumber } from "../../model/numbers";
import { Section } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { useCanvas } from "../../ui/use_canvas";
import { useTheme } from "./use_theme";
import { Why } from "./words";

const AXES = [{ value: "log", label: "log" }, { value: "linear", label: "linear" }] as const;

interface Props {
  readonly title?: string;
  readonly histogram: Histogram;
  readonly other: Histogram | null;
  /** What the two are; the second only if there is one. */
  readonly names: readonly [string, string];
  readonly mean: number;
  /** Elements in no bin: NaN and infinities. */
  readonly left: number;
  /** What to say while nothing is pointed at. */
  readonly note?: string;
  readonly axis: AxisKind;
  readonly onAxis: (axis: AxisKind) => void;
}

export function Distribution(props: Props) {
  const { title = "histogram", histogram, other, names, mean, left, note = "", axis, onAxis } = props;
  const [hit, setHit] = useState<SliceHit | null>(null);
  const empty = useMemo(() => total(histogram) === 0 && (!other || total(other) === 0), [histogram, other]);
  return (
    <Section
      title={title}
      aside={<Segments quiet label="Axis of values" value={axis} onChange={onAxis} choices={AXES} />}
    >
      {empty ? (
        <Why text="No element is finite: there is nothing to draw a histogram of." />
      ) : (
        <Plot {...{ histogram, other, axis, mean, names }} onHover={setHit} />
      )}
      <div className="picture-foot">
        <span className="picture-key">
          <i className="key-fill" /> {names[0]}
          {other && <><i className="key-line" /> {names[1]}</>}
        </span>
        <span className="number" role="status">{hit ? hitText(hit) : leftText(left) || note}</span>
      </div>
    </Section>
  );
}

interface PlotProps {
  readonly histogram: Histogram;
  readonly other: Histogram | null;
  readonly axis: AxisKind;
  readonly mean: number;
  readonly names: readonly [string, string];
  readonly onHover: (hit: SliceHit | null) => void;
}

function Plot({ histogram, other, axis, mean, names, onHover }: PlotProps) {
  const theme = useTheme();
  const [canvas, plot] = useCanvas((element) => new HistogramPlot(element, onHover));
  useEffect(() => {
    const marks = Number.isFinite(mean) ? [{ value: mean, label: "mean" }] : [];
    const [color, otherColor] = [theme.kinds.computed, theme.kinds.parameter];
    plot.current?.set({ histogram, other, axis, theme, color, otherColor, marks });
  }, [plot, histogram, other, axis, mean, theme]);
  return (
    <canvas
      ref={canvas}
      className="canvas"
      style={{ height: 112 }}
      role="img"
      aria-label={`Histogram of ${names[0]}${other ? ` and ${names[1]}` : ""}`}
    />
  );
}

const leftText = (left: number): string => (left > 0 ? `${wholeNumber(left)} not finite: in no bar` : "");

function hitText({ low, high, fraction, otherFraction }: SliceHit): string {
  const range = low === high ? shortNumber(low) : `${shortNumber(low)} … ${shortNumber(high)}`;
  return `${range}: ${percent(fraction)}${otherFraction === null ? "" : ` | ${percent(otherFraction)}`}`;
}
