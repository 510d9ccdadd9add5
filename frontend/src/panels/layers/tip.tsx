/** The number of one cell, and how it stands to its past and to other blocks. */
import { VALUE } from "../../model/layers/derive";
import { cellText, pointsText, ratioText, worstLine } from "../../model/layers/scale";
import type { LayerRow } from "../../model/layers/tree";
import { referenceWords } from "../../model/layers/words";
import type { LayersData } from "./use_layers";

interface Props {
  readonly data: LayersData;
  readonly row: LayerRow;
  readonly column: number;
}

export function CellTip({ data, row, column }: Props) {
  const { statistic, steps, derived, hasBlocks, scale } = data;
  const isShare = statistic?.isShare ?? false;
  const record = row.record;
  const step = steps[column];
  if (!step) return null;
  if (record < 0) {
    const worst = worstLine(row.members.map((member) => derived(data.reference).line(member)), scale);
    return (
      <>
        <b>{row.node}</b> · step {step.number}
        <br />
        <span className="number">{cellText(worst.values[column], worst.states[column], scale)}</span>{" "}
        the worst of {row.members.length} inside
      </>
    );
  }
  const own = derived("absolute").line(record);
  const what = isShare ? "share" : "number";
  return (
    <>
      <b>{row.node}</b> · step {step.number}{step.type && ` · ${step.type}`}
      <br />
      <span className="number">{cellText(own.values[column], own.states[column], { what })}</span> {statistic?.label}
      {(["past", ...(hasBlocks ? ["blocks"] : [])] as ("past" | "blocks")[]).map((reference) => {
        const line = derived(reference).line(record);
        if (line.states[column] !== VALUE) return null;
        const text = isShare ? pointsText(line.values[column]) : ratioText(line.values[column]);
        return <div key={reference}>{text} {referenceWords(reference, "")}</div>;
      })}
    </>
  );
}
