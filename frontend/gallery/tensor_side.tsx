/** The pictures of one tensor: histogram, histogram over time, values as colours and as numbers. */
import { useEffect, useMemo, useRef, useState } from "react";
import { Heatmap, type CellHit } from "../src/draw/heatmap";
import { HistogramPlot } from "../src/draw/histogram";
import { HistogramTimePlot } from "../src/draw/histogram_time";
import { NumberGrid } from "../src/draw/number_grid";
import { shadeTable } from "../src/draw/shades";
import { readTheme } from "../src/draw/theme";
import { linearScale } from "../src/model/heat";
import { exactFloat32 } from "../src/model/numbers";
import { defaultChoice, indexOf, sliceExtent, sliceOf, type SliceChoice } from "../src/model/slices";
import { Chip, Section } from "../src/ui/parts";
import { Tile } from "../src/ui/number";
import { Segments } from "../src/ui/segments";
import { useCanvas } from "../src/ui/use_canvas";
import { drifting, madeUpHistogram, madeUpTensor } from "./data";

export function TensorSide() {
  return (
    <>
      <section className="section">
        <b style={{ fontSize: 15 }}>decoder.hidden</b> <Chip color="var(--kind-computed)">computed</Chip>
        <div className="label">
          <span className="number">float32 [64, 12, 86]</span> · model.py:38
        </div>
      </section>
      <Section title="statistics">
        <div className="tiles">
          <Tile name="mean" value={-2.1342e-4} note="± 9e-5 over batch" />
          <Tile name="std" value={0.0037134} note="± 1.2e-3" />
          <Tile name="zeros" value={0.61423} text="61.4 %" beyond="threshold 50 %" />
          <Tile name="abs max" value={0.0481} note="sample 17" />
        </div>
      </Section>
      <Histograms />
      <Values />
    </>
  );
}

const AXES = [{ value: "linear", label: "linear" }, { value: "log", label: "log" }] as const;

function Histograms() {
  const [axis, setAxis] = useState<"log" | "linear">("linear");
  const [step, setStep] = useState(12400);
  const data = useMemo(drifting, []);
  const [one, onePlot] = useCanvas((canvas) => new HistogramPlot(canvas));
  const [time, timePlot] = useCanvas((canvas) => new HistogramTimePlot(canvas, () => {}, setStep));
  useEffect(() => {
    const colors = readTheme();
    onePlot.current?.set({
      histogram: madeUpHistogram(0.004, 0.012, 0.3, 5), other: madeUpHistogram(0, 0.008, 0.05, 6), axis, theme: colors,
      color: colors.accent, otherColor: colors.kinds.parameter, marks: [{ value: 0.004, label: "mean" }],
    });
    const table = shadeTable("linear", colors.scheme, colors.panelRgb);
    timePlot.current?.set({ ...data, axis, theme: colors, table, step });
  }, [axis, step, data, onePlot, timePlot]);
  return (
    <>
      <Section title="histogram" aside={<Segments quiet label="axis" value={axis} onChange={setAxis} choices={AXES} />}>
        <canvas ref={one} className="canvas" style={{ height: 110 }} />
      </Section>
      <Section title="histogram over steps" aside={<span className="number">step {step}</span>}>
        <canvas ref={time} className="canvas" style={{ height: 110 }} />
      </Section>
    </>
  );
}

const Pointed = ({ choice, hit }: { choice: SliceChoice; hit: CellHit }) => (
  <span className="number">
    [{indexOf(choice, hit.row, hit.column).join(", ")}] {exactFloat32(hit.value)}
  </span>
);

function Values() {
  const { data, shape } = useMemo(() => madeUpTensor(64, 12, 86), []);
  const choice = useMemo(() => defaultChoice(shape), [shape]);
  const slice = useMemo(() => sliceOf(data, shape, choice), [data, shape, choice]);
  const [hit, setHit] = useState<CellHit | null>(null);
  const [map, mapPlot] = useCanvas((canvas) => new Heatmap(canvas, setHit));
  const scroller = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const colors = readTheme();
    const { high } = sliceExtent(slice);
    const table = shadeTable("linear", colors.scheme, colors.panelRgb);
    mapPlot.current?.set({ slice, scale: linearScale(0, high), table, theme: colors, markedRow: 22 });
    const grid = new NumberGrid(scroller.current as HTMLDivElement);
    grid.set({ slice, theme: colors, tint: null });
    return () => grid.close();
  }, [slice, mapPlot]);
  return (
    <>
      <Section title="values · sample × unit" aside={hit ? <Pointed choice={choice} hit={hit} /> : shape.join(" × ")}>
        <canvas ref={map} className="canvas" style={{ height: 190 }} />
      </Section>
      <Section title="numbers">
        <div
          ref={scroller}
          className="number-grid"
          tabIndex={0}
          role="group"
          aria-label="Numbers"
          style={{ height: 190 }}
        />
      </Section>
    </>
  );
}
