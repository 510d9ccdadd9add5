/** One statistic of all tensors at all recorded steps, for the strips in the boxes and for the scale of the colours. */
import { useMemo, useRef } from "react";
import { rowsOfGraph } from "../../model/heat_tables";
import { columnsOf, type History } from "../../model/history";
import { VALUE, type Cells, type Derived, type Reference } from "../../model/layers/derive";
import { layerScale, type LayerScale } from "../../model/layers/scale";
import type { GraphSource } from "../../model/source";
import { useLayers, useTrial, type LayersTable, type Statistic } from "../../state/data";
import type { Shown } from "../../state/page";
import { useReferences } from "../layers/use_references";

interface Found {
  readonly history: History | null;
  /** From all cells of the rows that are coloured. */
  readonly scale: LayerScale | null;
  readonly reference: Reference;
  /** The trial that this one is held against. */
  readonly other: string | null;
  readonly pending: boolean;
}

export function useHistory(source: GraphSource, shown: Shown, statistic: Statistic | null, apart: Uint8Array): Found {
  const { trial, type, ordinal } = shown;
  const of = shown.of ?? "value";
  const name = statistic?.name ?? "";
  const isShare = (statistic?.isCount ?? false) && name !== "count";
  const described = useTrial(statistic && trial).value;
  const hasTensors = described?.steps.tensors.some((count) => count > 0) ?? false;
  const loaded = useLayers(null, hasTensors ? trial : null, of, name, null);
  const asked = `${trial}\n${of}\n${name}`;
  // While another one is on its way, the one before is still handed out; it must not be taken for this one.
  const owner = useRef<{ table: LayersTable | null; asked: string }>({ table: null, asked: "" });
  if (loaded.value && !loaded.pending) owner.current = { table: loaded.value, asked };
  const table = owner.current.asked === asked ? owner.current.table : null;
  const { steps, cells, derived, reference, other } = useReferences({
    trial, described, table, of, statistic: name, isShare, rows: null, type,
  });
  const rows = useMemo(() => table && rowsOfGraph(source, table, of), [source, table, of]);
  const scale = useMemo(() => {
    if (!rows || !statistic) return null;
    return layerScale(cells, coloured(rows, cells, source, apart), reference, statistic.scale, isShare);
  }, [rows, cells, source, apart, reference, statistic, isShare]);
  const edges = useMemo(() => columnsOf(steps.map(({ number }) => number)), [steps]);
  const column = steps.findIndex((step) => step.ordinal === ordinal);
  const history = useMemo(
    () => (rows ? historyOf(rows, derived(reference), edges, column) : null), [rows, derived, reference, edges, column],
  );
  return { history, scale, reference, other, pending: hasTensors && loaded.pending && !loaded.problem && !table };
}

function historyOf(rows: Int32Array, derived: Derived, edges: Float64Array, column: number): History {
  const at = column < 0 ? -1 : (edges[column] + edges[column + 1]) / 2;
  return { edges, at, column, line: (record) => ((rows[record] ?? -1) < 0 ? null : derived.line(rows[record])) };
}

/** Rows that the scale is made for: what modules return, and parameters where nothing else has numbers. */
function coloured(rows: Int32Array, { states, columns }: Cells, source: GraphSource, apart: Uint8Array): number[] {
  const all = source.nodes.flatMap((_, i) => (apart[i] || rows[i] < 0 ? [] : i));
  const outputs = all.filter((i) => source.nodes[i].kind !== "parameter" && source.nodes[i].kind !== "buffer");
  const hasNumbers = (i: number): boolean =>
    states.subarray(rows[i] * columns, (rows[i] + 1) * columns).includes(VALUE);
  return (outputs.some(hasNumbers) ? outputs : all).map((i) => rows[i]);
}
