/** Histograms over steps: a map with steps to the right, or one outline per step. */
import { useEffect, useRef, useState, type MouseEvent } from "react";
import { HistogramRidges } from "../../draw/histogram_ridges";
import { HistogramTimePlot, type TimeHit } from "../../draw/histogram_time";
import { shadeTable } from "../../draw/shades";
import { percent, shortNumber, wholeNumber } from "../../model/numbers";
import { act, usePart } from "../../state/page";
import { Segments } from "../../ui/segments";
import { useCanvas } from "../../ui/use_canvas";
import type { Range } from "../curves/curves";
import type { TimeHistograms } from "./time_series";
import { useTheme } from "./use_theme";

interface Props {
  readonly histograms: TimeHistograms;
  readonly step: number | null;
  readonly range: Range | null;
  /** Its elements are whole numbers. */
  readonly isWhole: boolean;
  readonly isSample: boolean;
  readonly onPick: (step: number) => void;
}

const KINDS = [
  { value: "map", label: "map", title: "Steps to the right, values upwards; the darker, the more." },
  { value: "ridges", label: "ridges", title: "One outline per step, the newest in front." },
] as const;

export function TimePicture(props: Props) {
  const series = usePart((page) => page.series);
  const [hit, setHit] = useState<TimeHit | null>(null);
  return (
    <>
      {series.ridges ? <Ridges {...props} /> : <StepMap {...props} onHover={setHit} />}
      <div className="picture-foot">
        <span>histogram over steps{props.isSample ? " (whole batch)" : ""}</span>
        <span className="number" role="status">{!series.ridges && hit && hitText(hit)}</span>
        <Segments
          label="as"
          choices={KINDS}
          value={series.ridges ? "ridges" : "map"}
          onChange={(kind) => act.page({ series: { ...series, ridges: kind === "ridges" } })}
        />
      </div>
    </>
  );
}

interface MapProps extends Props {
  readonly onHover: (hit: TimeHit | null) => void;
}

function StepMap({ histograms, step, range, isWhole, onPick, onHover }: MapProps) {
  const theme = useTheme();
  const pick = useRef(onPick);
  pick.current = onPick;
  const [canvas, plot] = useCanvas((element) => new HistogramTimePlot(element, onHover, (at) => pick.current(at)));
  useEffect(() => {
    const table = shadeTable("linear", theme.scheme, theme.panelRgb);
    plot.current?.set({ ...histograms, isWhole, theme, table, step, range });
  }, [plot, histograms, isWhole, theme, step, range]);
  return (
    <canvas
      ref={canvas}
      className="canvas under-curves"
      style={{ height: 96 }}
      role="img"
      aria-label="Histogram over steps: values upwards, steps to the right. A click chooses a step."
    />
  );
}

function Ridges({ histograms, step, isWhole, onPick }: Props) {
  const [canvas, plot] = useCanvas((element) => new HistogramRidges(element));
  useEffect(() => {
    plot.current?.set({ ...histograms, isWhole, step });
  }, [plot, histograms, isWhole, step]);
  const choose = (event: MouseEvent): void => {
    const at = plot.current?.stepAt(event.nativeEvent.offsetY) ?? null;
    if (at !== null) onPick(at);
  };
  return (
    <canvas
      ref={canvas}
      className="canvas"
      style={{ height: 190 }}
      role="img"
      aria-label="Histogram over steps: one outline per step, values to the right. A click chooses a step."
      onClick={choose}
    />
  );
}

const hitText = ({ step, low, high, fraction }: TimeHit): string =>
  `step ${wholeNumber(step)}, ${shortNumber(low, 2)} … ${shortNumber(high, 2)}: ${percent(fraction)}`;
