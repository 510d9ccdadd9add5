/** The first thing that is seen: what is wrong, where, since when; and all trials as a table. */
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import { differences } from "../../model/overview/columns";
import { useOverviewFindings } from "../../state/findings";
import { useOverview } from "../../state/data";
import { usePart } from "../../state/page";
import { Empty } from "../../ui/parts";
import { Attention } from "./attention";
import { Chart } from "./chart";
import "./overview.css";
import { sparkScale } from "./spark";
import { TrialsTable } from "./table";
import { Tools } from "./tools";
import { useTableRows } from "./use_rows";

const NO_TRIALS = { trials: [], complete: false };

export function Panel() {
  const { value, problem } = useOverview();
  const found = useOverviewFindings();
  const table = value ?? NO_TRIALS;
  const rows = useTableRows(table, found);
  const chart = usePart((page) => page.overview.chart);
  const scroller = useRef<HTMLDivElement>(null);
  const card = useRef<HTMLDivElement>(null);
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    // Where the table begins: findings and charts above it grow and shrink.
    const measure = (): void => {
      const [outer, inner] = [scroller.current, card.current];
      if (!outer || !inner) return;
      setOffset(inner.getBoundingClientRect().top - outer.getBoundingClientRect().top + outer.scrollTop + 34);
    };
    measure();
    const observer = new ResizeObserver(measure);
    for (const child of scroller.current?.firstElementChild?.children ?? []) observer.observe(child);
    return () => observer.disconnect();
  }, [chart, found, value]);
  const scale = useMemo(() => sparkScale(table.trials), [table]);
  const all = useMemo(() => differences(table.trials), [table]);
  return (
    <div className="overview" role="region" aria-label="Overview" ref={scroller} tabIndex={-1}>
      <div className="overview-inside">
        {problem && <Empty>{problem}</Empty>}
        <Attention table={table} found={found} />
        <section aria-label="Trials" className="overview-trials">
          <Tools rows={rows} total={table.trials.length} />
          {chart !== "none" && table.trials.length > 1 && <Chart rows={rows} />}
          <div className="overview-card overview-wide" ref={card}>
            <TrialsTable {...{ rows, found, scale, scroller, offset }} differences={all} />
          </div>
        </section>
      </div>
    </div>
  );
}
