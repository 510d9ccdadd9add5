/** Above the table: filter, columns, what is drawn beside it. */
import { useEffect, useId, useState } from "react";
import { isExpression } from "../../model/overview/expression";
import { act, usePart, useTrials } from "../../state/page";
import { Segments } from "../../ui/segments";
import { Button } from "../../ui/parts";
import type { TableRows } from "./use_rows";

export function Tools({ rows, total }: { readonly rows: TableRows; readonly total: number }) {
  const { filter, chart } = usePart((page) => page.overview);
  const chosen = useTrials();
  const [typed, setTyped] = useState(filter);
  useEffect(() => setTyped(filter), [filter]);
  const type = (text: string): void => {
    setTyped(text);
    act.page({ overview: { filter: text } }, { transient: true });
  };
  const names = rows.trials.filter(({ known }) => known !== "broken").map(({ name }) => name);
  return (
    <div className="overview-tools">
      <h2>Trials</h2>
      <input
        type="search"
        className="overview-filter"
        placeholder="Filter: text, or lr > 1e-3 and findings = 0"
        aria-label="Filter trials by text, or by an expression such as lr > 1e-3 and findings = 0"
        aria-invalid={rows.problem !== null}
        value={typed}
        onChange={(event) => type(event.target.value)}
        onBlur={() => act.page({ overview: { filter: typed } })}
      />
      <Columns rows={rows} />
      {total > 1 && (
        <Segments
          label="chart"
          choices={[
            { value: "none", label: "none" }, { value: "parallel", label: "parallel" },
            { value: "scatter", label: "scatter" },
          ]}
          value={chart}
          onChange={(next) => act.page({ overview: { chart: next } })}
        />
      )}
      {names.length > 1 && (
        <Button
          title="Draws the curves of these trials together"
          onClick={() => act.page({ trials: names.slice(0, MOST_CURVES), tab: "metrics" })}
        >
          {`Metrics of ${names.length > MOST_CURVES ? `the first ${MOST_CURVES}` : `these ${names.length}`}`}
        </Button>
      )}
      {chosen.length > 1 && (
        <Button onClick={() => act.page({ tab: "metrics" })}>{`Metrics of ${chosen.length} chosen`}</Button>
      )}
      <span className="grow" />
      <span className="overview-count" role="status">
        {rows.problem ?? (rows.trials.length === total ? "" : `${rows.trials.length} of ${total} · `)}
        {rows.problem === null && "click a trial to look inside"}
      </span>
      {rows.problem && isExpression(typed) && <span className="visually-hidden">The filter is not applied.</span>}
    </div>
  );
}

const MOST_CURVES = 40;

function Columns({ rows }: { readonly rows: TableRows }) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const shown = rows.columns.map((column) => column.id);
  const put = (name: string, is: boolean): void => {
    const order = rows.all.map((column) => column.id);
    const more = order.filter((each) => shown.includes(each) || each === name);
    const next = is ? more : shown.filter((each) => each !== name);
    if (next.length) act.page({ overview: { columns: next } });
  };
  return (
    <span className="overview-columns">
      <button type="button" className="button" popoverTarget={id}>Columns <span aria-hidden="true">▾</span></button>
      <div
        id={id} popover="auto" className="popover overview-columns-list" aria-label="Columns"
        onToggle={(event) => setOpen(event.newState === "open")}
      >
        {isOpen && (
          <>
            <Button plain onClick={() => act.page({ overview: { columns: null } })}>as usual</Button>
            {rows.all.filter((column) => column.id !== "name").map((column) => (
              <label key={column.id} title={column.about}>
                <input
                  type="checkbox" checked={shown.includes(column.id)}
                  onChange={(event) => put(column.id, event.target.checked)}
                />
                {column.label} {column.label !== column.word && <code>{column.word}</code>}
              </label>
            ))}
          </>
        )}
      </div>
    </span>
  );
}
