/** The table of trials: columns, filter, order and choice, kept in the address; the library does the rows. */
import {
  createTable, getCoreRowModel, getFilteredRowModel, getSortedRowModel, type ColumnDef,
} from "@tanstack/table-core";
import { useMemo } from "react";
import type { OverviewFindings } from "../../api/types";
import {
  columnsOf, compareCells, isNothing, settingsOf, usualColumns, type Cell, type Column, type Counts,
} from "../../model/overview/columns";
import { isExpression, parseFilter, textFits } from "../../model/overview/expression";
import type { OverviewTable, OverviewTrial } from "../../state/data";
import { usePart } from "../../state/page";

export interface TableRows {
  /** Those that fit, in their order. */
  readonly trials: readonly OverviewTrial[];
  readonly columns: readonly Column[];
  readonly all: readonly Column[];
  readonly sort: { readonly id: string; readonly isDown: boolean };
  /** Why the filter cannot be understood. */
  readonly problem: string | null;
}

const NOTHING_KNOWN: Counts = { errors: 0, warnings: 0, isChecked: false };

export function countsOf(found: OverviewFindings | null): (name: string) => Counts {
  if (!found) return () => NOTHING_KNOWN;
  const places = new Map(found.trials.map((name, i) => [name, i]));
  return (name) => {
    const i = places.get(name);
    return i === undefined ? NOTHING_KNOWN
      : { errors: found.errors[i], warnings: found.warnings[i], isChecked: found.checked[i] };
  };
}

export function useTableRows(table: OverviewTable, found: OverviewFindings | null): TableRows {
  const { filter, sort, columns: wanted } = usePart((page) => page.overview);
  const counts = useMemo(() => countsOf(found), [found]);
  const all = useMemo(() => columnsOf(table.trials, counts), [table, counts]);
  const loss = useMemo(() => usualLoss(table.trials), [table]);
  const shown = wanted ?? usualColumns(table.trials, loss);
  const key = shown.join("\n");
  const columns = useMemo(
    () => key.split("\n").flatMap((id) => all.find((column) => column.id === id) ?? []), [all, key],
  );
  const { fits, problem } = useMemo(() => filterOf(filter, all), [filter, all]);
  const order = { id: sort.replace(/^-/, "") || "findings", isDown: sort === "" || sort.startsWith("-") };
  const trials = useMemo(() => {
    const worst = (trial: OverviewTrial): number => {
      const { errors, warnings, isChecked } = counts(trial.name);
      return isChecked ? errors * 1000 + warnings : -1;
    };
    return rowsOf(table.trials, all, fits, order, worst);
  }, [table, all, fits, order.id, order.isDown, counts]);
  return { trials, columns, all, sort: order, problem };
}

/** The metric that most trials draw as their loss. */
export function usualLoss(trials: readonly OverviewTrial[]): string {
  const counts = new Map<string, number>();
  for (const { loss } of trials) if (loss) counts.set(loss, (counts.get(loss) ?? 0) + 1);
  return [...counts].reduce((most, each) => (each[1] > most[1] ? each : most), ["", 0] as [string, number])[0];
}

function filterOf(
  typed: string, all: readonly Column[],
): { readonly fits: (trial: OverviewTrial) => boolean; readonly problem: string | null } {
  const text = typed.trim();
  if (text === "") return { fits: () => true, problem: null };
  if (!isExpression(text)) return { fits: (trial) => textFits(text, haystack(trial)), problem: null };
  const byWord = new Map(all.map((column) => [column.word, column]));
  const parsed = parseFilter(text, [...byWord.keys()]);
  if ("problem" in parsed) return { fits: () => true, problem: parsed.problem };
  return {
    fits: (trial) => parsed.fits((word): Cell => byWord.get(word)?.value(trial) ?? null), problem: null,
  };
}

const haystack = (trial: OverviewTrial): string =>
  [trial.name, ...settingsOf(trial.config).map(([name, value]) => `${name} ${value} ${name}=${value}`)].join(" ");

function rowsOf(
  trials: readonly OverviewTrial[], all: readonly Column[], fits: (trial: OverviewTrial) => boolean,
  order: TableRows["sort"], worst: (trial: OverviewTrial) => number,
): OverviewTrial[] {
  const columns = all.map((column): ColumnDef<OverviewTrial, Cell> => {
    const value = column.id === "findings" ? worst : column.value;
    return {
      id: column.id,
      // What is not known comes last, whichever way it is sorted.
      accessorFn: (trial) => {
        const cell = value(trial);
        return isNothing(cell) ? undefined as unknown as Cell : cell;
      },
      sortUndefined: "last",
      sortingFn: (a, b, id) => compareCells(a.getValue(id), b.getValue(id)),
    };
  });
  const made = createTable<OverviewTrial>({
    data: [...trials],
    columns,
    state: {
      sorting: [{ id: order.id, desc: order.isDown }], globalFilter: fits, columnPinning: { left: [], right: [] },
    },
    globalFilterFn: (row) => fits(row.original),
    getColumnCanGlobalFilter: () => true,
    getCoreRowModel: getCoreRowModel(),
    getFilteredRowModel: getFilteredRowModel(),
    getSortedRowModel: getSortedRowModel(),
    onStateChange: () => undefined,
    renderFallbackValue: null,
  });
  return made.getRowModel().rows.map(({ original }) => original);
}
