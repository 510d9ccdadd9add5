/** The number of one cell, and how it stands to its past and to other blocks. */
import { VALUE } from "../../model/layers/derive";
import { cellText } from "../../model/layers/scale";
import type { LayerRow } from "../../model/layers/tree";
import { referenceWords } from "../../model/layers/words";
import { pointsText, ratioText } from "../../model/ratio";
import type { LayersData } from "./use_layers";

interface Props {
  readonly data: LayersData;
  readonly row: LayerRow;
  /** Whose number the cell shows: of a folded row that of the worst layer inside. */
  readonly record: number;
  readonly column: number;
}

export function CellTip({ data, row, record, column }: Props) {
  const { statistic, steps, derived, hasBlocks, table } = data;
  const isShare = statistic?.isShare ?? false;
  const step = steps[column];
  if (!step || !table || record < 0) return null;
  const own = derived("absolute").line(record);
  const what = isShare ? "share" : "number";
  return (
    <>
      <b>{table.node[record]}</b> · step {step.number}{step.type && ` · ${step.type}`}
      {record !== row.record && <div>the worst of {row.members.length} inside {row.node}</div>}
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
