/** Trials, one row each: only those in view are made. */
import { useRef, type KeyboardEvent, type RefObject } from "react";
import type { OverviewFindings } from "../../api/types";
import { isNothing, ownSettings, tagsOf, type Column, type Difference } from "../../model/overview/columns";
import { percent, shortNumber, wholeNumber } from "../../model/numbers";
import type { OverviewTrial } from "../../state/data";
import { act, trialColor, useTrials } from "../../state/page";
import { NumberText } from "../../ui/number";
import { useRowWindow } from "../../ui/rows";
import { Mark } from "../findings/mark";
import { bytesText } from "../run/facts";
import { openTrial } from "./open_trial";
import { Spark, type SparkScale } from "./spark";
import { countsOf, type TableRows } from "./use_rows";

const ROW_HEIGHT = 40;

interface Props {
  readonly rows: TableRows;
  readonly found: OverviewFindings | null;
  readonly scale: SparkScale;
  readonly differences: readonly Difference[];
  readonly scroller: RefObject<HTMLElement | null>;
  readonly offset: number;
}

export function TrialsTable({ rows, found, scale, differences, scroller, offset }: Props) {
  const { trials, columns, sort } = rows;
  const chosen = useTrials();
  const box = useRef<HTMLTableElement>(null);
  const { first, end } = useRowWindow(scroller, trials.length, ROW_HEIGHT, offset);
  const counts = countsOf(found);
  const choose = (name: string, is: boolean): void => {
    const next = is ? [...chosen, name] : chosen.filter((each) => each !== name);
    if (next.length) act.page({ trials: next });
  };
  return (
    <table
      className="overview-table" ref={box} aria-rowcount={trials.length + 1}
      onKeyDown={(event) => walk(event, box)}
    >
      <thead>
        <tr>
          <th className="check"><span className="visually-hidden">chosen for curves</span></th>
          {columns.map((column) => <Head key={column.id} column={column} sort={sort} />)}
        </tr>
      </thead>
      <tbody>
        {first > 0 && <tr aria-hidden="true" className="room" style={{ height: first * ROW_HEIGHT }}><td /></tr>}
        {trials.slice(first, end).map((trial, i) => (
          <tr key={trial.name} aria-rowindex={first + i + 2} onClick={(event) => press(event.target as Element, trial)}>
            <td className="check">
              <input
                type="checkbox" aria-label={`Choose ${trial.name}`} checked={chosen.includes(trial.name)}
                disabled={trial.known === "broken"} onChange={(event) => choose(trial.name, event.target.checked)}
              />
            </td>
            {columns.map((column) => (
              <CellOf key={column.id} {...{ column, trial, scale, differences }} counts={counts(trial.name)} />
            ))}
          </tr>
        ))}
        {end < trials.length && (
          <tr aria-hidden="true" className="room" style={{ height: (trials.length - end) * ROW_HEIGHT }}><td /></tr>
        )}
      </tbody>
    </table>
  );
}

function press(target: Element, trial: OverviewTrial): void {
  if (target.closest("input, button, a") || trial.known === "broken") return;
  void openTrial(trial.name);
}

/** Up and down lead from trial to trial. */
function walk(event: KeyboardEvent, box: RefObject<HTMLTableElement | null>): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const names = [...(box.current?.querySelectorAll<HTMLElement>("button.overview-name") ?? [])];
  const at = names.indexOf(document.activeElement as HTMLElement);
  if (at < 0) return;
  names[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  event.preventDefault();
}

const isRight = ({ id, kind }: Column): boolean => kind !== "text" && id !== "findings";
const UNSORTED = ["curve", "differs"];

function Head({ column, sort }: { readonly column: Column; readonly sort: TableRows["sort"] }) {
  const isSorted = sort.id === column.id;
  const next = isSorted && sort.isDown ? column.id : `-${column.id}`;
  const first = column.kind === "text" ? column.id : `-${column.id}`;
  return (
    <th
      className={isRight(column) ? "right" : ""} title={column.about} scope="col"
      aria-sort={isSorted ? (sort.isDown ? "descending" : "ascending") : undefined}
    >
      {UNSORTED.includes(column.id) ? column.label : (
        <button type="button" onClick={() => act.page({ overview: { sort: isSorted ? next : first } })}>
          {column.label}{isSorted && <span aria-hidden="true">{sort.isDown ? " ↓" : " ↑"}</span>}
        </button>
      )}
    </th>
  );
}

interface CellProps {
  readonly column: Column;
  readonly trial: OverviewTrial;
  readonly scale: SparkScale;
  readonly differences: readonly Difference[];
  readonly counts: { readonly errors: number; readonly warnings: number; readonly isChecked: boolean };
}

function CellOf({ column, trial, scale, differences, counts }: CellProps) {
  const { id, kind } = column;
  if (id === "name") return <NameCell trial={trial} />;
  if (id === "curve") return <td><Spark trial={trial} scale={scale} color={trialColor(trial.name)} /></td>;
  if (id === "findings") return <td><FindingCounts trial={trial} counts={counts} /></td>;
  if (id === "differs") return <td className="differs"><Differs trial={trial} differences={differences} /></td>;
  if (id === "tags") {
    return <td>{tagsOf(trial).map((tag) => <span key={tag} className="overview-chip">{tag}</span>)}</td>;
  }
  const value = column.value(trial);
  const isWaiting = trial.known === "unread" && !id.startsWith("config:") && id !== "begun";
  if (isWaiting) return <td className="right faint">…</td>;
  if (value === null) return <td className={isRight(column) ? "right faint" : "faint"}>–</td>;
  if (id === "steps") {
    return (
      <td className="right number">
        {wholeNumber(value as number)} <span className="faint">/ {wholeNumber(trial.steps)}</span>
      </td>
    );
  }
  if (typeof value === "number") {
    return (
      <td className={isNothing(value) ? "right bad" : "right"}>
        <NumberText value={value} text={written(value, kind)} />
      </td>
    );
  }
  const usual = differences.find(({ name }) => `config:${name}` === id)?.usual;
  return <td className={value === usual ? "number faint" : "number"} title={String(value)}>{value}</td>;
}

function written(value: number, kind: Column["kind"]): string {
  if (kind === "share") return percent(value);
  if (kind === "bytes") return bytesText(value);
  if (kind === "time") return timeText(value);
  return shortNumber(value);
}

function timeText(seconds: number): string {
  const date = new Date(seconds * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
    : date.toLocaleDateString([], { day: "numeric", month: "short" });
}

function NameCell({ trial }: { readonly trial: OverviewTrial }) {
  const { live, closed, known, problem } = trial;
  const [word, look] = known === "unread" ? ["being read", "ended"] : known === "broken" ? ["cannot be read", "gone"]
    : live ? ["running", "live"] : closed ? ["ended", "ended"] : ["interrupted", "paused"];
  return (
    <th scope="row">
      <div className="name">
      <span className="dot" style={{ background: trialColor(trial.name) }} />
      <button
        type="button" className="overview-name" disabled={known === "broken"} onClick={() => void openTrial(trial.name)}
      >
        {trial.name}
      </button>
      <small title={problem || undefined}>
        <i className={`dot ${look}`} />{word}{known === "read" && problem && ", damaged"}
      </small>
      </div>
    </th>
  );
}

function FindingCounts({ trial, counts }: Pick<CellProps, "trial" | "counts">) {
  if (trial.known === "broken") return <span className="faint">–</span>;
  if (!counts.isChecked) return <span className="faint">not checked yet</span>;
  if (counts.errors + counts.warnings === 0) return <span className="faint">nothing found</span>;
  return (
    <span className="overview-counts">
      {counts.errors > 0 && <span><Mark severity="error" />{counts.errors}</span>}
      {counts.warnings > 0 && <span><Mark severity="warning" />{counts.warnings}</span>}
    </span>
  );
}

function Differs({ trial, differences }: Pick<CellProps, "trial" | "differences">) {
  const own = ownSettings(trial, differences);
  if (own.length === 0) return <span className="faint">as usual</span>;
  return own.map(([name, value]) => (
    <span key={name} className="overview-chip number">{name} {value === null ? "–" : String(value)}</span>
  ));
}
