/** One statistic of all tensors at all recorded steps, for the strips in the boxes and for the scale of the colours. */
import { useMemo, useRef } from "react";
import { ABSENT, VALUE, type HeatScale } from "../../model/heat";
import { robustScale, thinned } from "../../model/heat_scale";
import { rowsOfGraph } from "../../model/heat_tables";
import { columnsOf, type History, type HistoryLine } from "../../model/history";
import { vsPast } from "../../model/layers/derive";
import type { GraphSource } from "../../model/source";
import { useHeat, useTrial, type HeatTable, type Statistic, type Trial } from "../../state/data";
import type { Shown } from "../../state/page";

interface Found {
  readonly history: History | null;
  /** From all cells of the rows that are coloured. */
  readonly scale: HeatScale | null;
  readonly pending: boolean;
}

const NONE: Found = { history: null, scale: null, pending: false };

export function useHistory(
  source: GraphSource, shown: Shown, statistic: Statistic | null, isPast: boolean, apart: Uint8Array,
): Found {
  const { trial, of, type, ordinal } = shown;
  const described = useTrial(statistic && trial).value;
  const hasTensors = described?.steps.tensors.some((count) => count > 0) ?? false;
  const loaded = useHeat(hasTensors ? trial : null, of, statistic?.name ?? "");
  const asked = `${trial}\n${of}\n${statistic?.name}`;
  // While another one is on its way, the one before is still handed out; it must not be taken for this one.
  const owner = useRef<{ matrix: HeatTable | null; asked: string }>({ matrix: null, asked: "" });
  if (loaded.value && !loaded.pending) owner.current = { matrix: loaded.value, asked };
  const matrix = owner.current.asked === asked ? owner.current.matrix : null;
  const columns = useMemo(() => (matrix && described ? columnsOfType(described, matrix, type) : null),
    [matrix, described, type]);
  const lines = useMemo(
    () => (matrix && columns ? linesOf(source, matrix, columns.places, of ?? "value", isPast, statistic) : null),
    [source, matrix, columns, of, isPast, statistic],
  );
  const scale = useMemo(
    () => (lines && statistic && !isPast ? scaleOf(lines.plain, source, apart, statistic) : null),
    [lines, source, apart, statistic, isPast],
  );
  const column = columns && ordinal !== null ? columns.ordinals.indexOf(ordinal) : -1;
  const history = useMemo((): History | null => {
    if (!columns || !lines) return null;
    const at = column < 0 ? -1 : (columns.edges[column] + columns.edges[column + 1]) / 2;
    return { edges: columns.edges, at, column, line: lines.line };
  }, [columns, lines, column]);
  if (!statistic) return NONE;
  return { history, scale, pending: hasTensors && loaded.pending && loaded.problem === null && matrix === null };
}

interface Columns {
  readonly places: readonly number[];
  readonly ordinals: readonly number[];
  readonly edges: Float64Array;
}

/** Steps of the shown type, where they happened: other types of step have other networks. */
function columnsOfType({ steps, types }: Trial, matrix: HeatTable, type: string | null): Columns {
  const found: { place: number; ordinal: number; number: number }[] = [];
  steps.ordinal.forEach((ordinal, i) => {
    const place = type === null || types[steps.type[i]] === type ? matrix.place(ordinal) : -1;
    if (place >= 0) found.push({ place, ordinal, number: steps.number[i] });
  });
  return {
    places: found.map(({ place }) => place),
    ordinals: found.map(({ ordinal }) => ordinal),
    edges: columnsOf(found.map(({ number }) => number)),
  };
}

interface Lines {
  readonly line: (record: number) => HistoryLine | null;
  /** The numbers themselves; null for a tensor without any. */
  readonly plain: (record: number) => Float32Array | null;
}

/** Worked out when they are drawn, and kept. */
function linesOf(
  source: GraphSource, matrix: HeatTable, places: readonly number[], of: string, isPast: boolean,
  statistic: Statistic | null,
): Lines {
  const rows = rowsOfGraph(source, matrix, of);
  const known = new Map<number, HistoryLine | null>();
  const plain = (record: number): Float32Array | null => {
    const row = rows[record];
    if (row === undefined || row < 0) return null;
    const values = matrix.values(row);
    return Float32Array.from(places, (place) => values[place]);
  };
  const make = (record: number): HistoryLine | null => {
    const values = plain(record);
    if (!values) return null;
    const line = { values, states: Uint8Array.from(values, (value) => (Number.isNaN(value) ? ABSENT : VALUE)) };
    return isPast ? vsPast(line, statistic?.isCount ?? false) : line;
  };
  const line = (record: number): HistoryLine | null => {
    let found = known.get(record);
    if (found === undefined) known.set(record, (found = make(record)));
    return found;
  };
  return { line, plain };
}

function scaleOf(
  plain: Lines["plain"], source: GraphSource, apart: Uint8Array, statistic: Statistic,
): HeatScale | null {
  const all = source.nodes.flatMap((_, i) => (apart[i] ? [] : i));
  const outputs = all.filter((i) => source.nodes[i].kind !== "parameter" && source.nodes[i].kind !== "buffer");
  for (const records of [outputs, all]) {
    const lines = records.flatMap((record) => plain(record) ?? []);
    const found = robustScale(thinned(lines), statistic.scale, statistic.isCount);
    if (found) return found;
  }
  return null;
}
