/** The evidence of a finding: the row of its layer over all steps, and a line for as long as it was seen. */
import { useEffect, useMemo, useState } from "react";
import type { Finding } from "../../api/types";
import { LayersHeat } from "../../draw/layers_heat";
import { stepAxis } from "../../model/layers/axis";
import { Derived, type Reference } from "../../model/layers/derive";
import { layerScale } from "../../model/layers/scale";
import { partsOf } from "../../state/codec";
import { useEvidence, useTrial, type LayersTable, type Trial } from "../../state/data";
import { useCanvas } from "../../ui/use_canvas";
import { statisticsOf } from "../layers/statistics";

interface Props {
  readonly trial: string;
  readonly finding: Finding;
}

export function Strip({ trial, finding }: Props) {
  const parts = useMemo(() => partsOf(finding.link.replace(/^#/, "")), [finding.link]);
  const wanted = parts.page.heat?.statistic ?? "";
  if (!finding.node || !wanted) return <span className="overview-strip" />;
  const isPast = parts.page.heat?.mode === "past";
  return <Row {...{ trial, finding, wanted, isPast }} of={parts.look.of ?? "value"} />;
}

interface RowProps extends Props {
  readonly wanted: string;
  readonly of: string;
  readonly isPast: boolean;
}

function Row({ trial, finding, wanted, of, isPast }: RowProps) {
  const described = useTrial(trial).value;
  const statistic = statisticsOf(described).find(({ value }) => value === wanted);
  const table = useEvidence(statistic ? trial : null, of, wanted).value;
  const reference: Reference = isPast ? "past" : "absolute";
  const [canvas, paint] = useCanvas((element) => new LayersHeat(element));
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.round(entry.contentRect.width)));
    observer.observe(canvas.current as HTMLCanvasElement);
    return () => observer.disconnect();
  }, [canvas]);
  const steps = useMemo(() => stepsOf(described, table), [described, table]);
  const axis = useMemo(
    () => stepAxis(steps, steps[steps.length - 1] ?? 0, width, false), [steps, width],
  );
  useEffect(() => {
    const record = table?.node.findIndex((node) => node === finding.node) ?? -1;
    if (!table || !statistic || width === 0) return paint.current?.set(null);
    if (record < 0) { // it has none, as a parameter without a gradient
      const nothing = { values: new Float32Array(steps.length), states: new Uint8Array(steps.length) };
      const any = layerScale({ ...nothing, rows: 1, columns: steps.length }, [], "absolute", "log", false);
      return paint.current?.set({ rows: 1, rowHeight: 15, line: () => nothing, scale: any, axis });
    }
    const cells = { rows: table.rows, columns: table.ordinals.length, values: table.values, states: table.states };
    const isParameter = (row: number): boolean => table.kind[row] === "parameter";
    const alike = table.kind.map((_, row) => row).filter((row) =>
      isParameter(row) === isParameter(record) && !["target", "loss"].includes(table.kind[row]));
    const scale = layerScale(cells, alike, reference, statistic.scale, statistic.isShare);
    const line = new Derived(cells, reference, statistic.isShare, () => [], null).line(record);
    paint.current?.set({ rows: 1, rowHeight: 15, line: () => line, scale, axis });
  }, [table, statistic, steps, axis, reference, finding.node, width, paint]);
  const words = [statistic?.label ?? wanted, of.startsWith("gradient") ? "of the gradient" : "",
    reference === "past" ? "vs. own past" : ""].filter(Boolean).join(" ");
  const [from, to] = [axis.x(finding.firstStep), axis.x(finding.lastStep)];
  return (
    <span className="overview-strip" aria-hidden="true">
      <span className="overview-strip-words">{words} over steps</span>
      <canvas ref={canvas} />
      <i className={finding.severity} style={{ left: from, width: Math.max(3, to - from) }} />
    </span>
  );
}

function stepsOf(described: Trial | null, table: LayersTable | null): Float64Array {
  if (!described || !table) return new Float64Array(0);
  const numbers = new Map(described.steps.ordinal.map((ordinal, i) => [ordinal, described.steps.number[i]]));
  return Float64Array.from(table.ordinals, (ordinal) => numbers.get(ordinal) ?? 0);
}
