/** What the user wrote down while training, by step. A click goes to the recorded step nearest to a note. */
import { memo, useDeferredValue, useMemo, useState } from "react";
import { askNotes } from "../../api/requests";
import { wholeNumber } from "../../model/numbers";
import { act, trialColor, usePart, useShown, useTrials } from "../../state/page";
import { useCatalog } from "../../state/data";
import { useAll } from "../../state/many";
import { Button, Empty } from "../../ui/parts";
import { dateText, durationText } from "../curves/axes";
import { TabPanel, Waiting } from "../tab_panel";
import { filterNotes, hasStep, pieces, type NoteRow } from "./filter";
import "./notes.css";

const AT_ONCE = 500;

export function Panel() {
  const trials = useTrials();
  const loaded = useAll(trials.map(askNotes));
  const filter = usePart((page) => page.notes);
  const query = useDeferredValue(filter);
  const all = useMemo(
    () => trials.map((trial, i) => ({ trial, color: trialColor(trial), notes: loaded.values[i] ?? [] })),
    [trials, loaded],
  );
  const count = all.reduce((sum, { notes }) => sum + notes.length, 0);
  const rows = useMemo(() => filterNotes(all, query), [all, query]);
  if (count === 0) {
    return (
      <TabPanel label="Notes">
        {loaded.problem ? <Empty>{loaded.problem}</Empty> : loaded.pending ? <Waiting what="notes" /> : <NoNotes />}
      </TabPanel>
    );
  }
  const bar = (
    <>
      <input
        type="search"
        className="search-field"
        aria-label="Filter notes"
        placeholder="filter: words, 120, >100, 100-200"
        size={30}
        value={filter}
        onChange={(event) => act.page({ notes: event.target.value }, { transient: true })}
        onBlur={() => act.page({ notes: filter })}
      />
      <span className="label end" role="status">
        {rows.length < count && `${wholeNumber(rows.length)} of `}
        {wholeNumber(count)} {count === 1 ? "note" : "notes"}
      </span>
    </>
  );
  return (
    <TabPanel label="Notes" bar={bar}>
      {rows.length === 0 ? (
        <Empty action={<Button onClick={() => act.page({ notes: "" })}>show all notes</Button>}>
          None of the {wholeNumber(count)} notes contains “{query}”.
        </Empty>
      ) : (
        <NoteList rows={rows} query={query} named={trials.length > 1} />
      )}
    </TabPanel>
  );
}

const NoNotes = () => (
  <Empty>
    No notes were written. While training, <code>run.note("learning rate halved")</code> keeps a line of text at the
    current step.
  </Empty>
);

interface ListProps {
  readonly rows: readonly NoteRow[];
  readonly query: string;
  /** Several trials: each note says whose it is. */
  readonly named: boolean;
}

function NoteList({ rows, query, named }: ListProps) {
  const [most, setMost] = useState(AT_ONCE);
  const { step, trial } = useShown("a");
  const catalog = useCatalog().value;
  const starts = useMemo(() => new Map(catalog?.trials.map(({ name, created }) => [name, created])), [catalog]);
  const current = nearest(rows, step, trial);
  return (
    <>
      <div className="note-head" aria-hidden="true">
        <span />
        <span className="number">step</span>
        <span>time</span>
        <span>note</span>
      </div>
      <ol className="notes">
        {rows.slice(0, most).map((row, i) => (
          <NoteItem
            key={i}
            row={row}
            start={starts.get(row.trial) ?? 0}
            query={query}
            named={named}
            current={row === current}
          />
        ))}
      </ol>
      {rows.length > most && (
        <div className="notes-more">
          <Button onClick={() => setMost(most * 4)}>show more of {wholeNumber(rows.length - most)} others</Button>
        </div>
      )}
    </>
  );
}

/** The newest note at or before the step that is looked at. */
function nearest(rows: readonly NoteRow[], step: number | null, trial: string | null): NoteRow | null {
  if (step === null) return null;
  return rows.findLast((row) => row.trial === trial && hasStep(row) && row.step <= step) ?? null;
}

interface ItemProps {
  readonly row: NoteRow;
  readonly start: number;
  readonly query: string;
  readonly named: boolean;
  readonly current: boolean;
}

const NoteItem = memo(function NoteItem({ row, start, query, named, current }: ItemProps) {
  const when = dateText(row.time);
  return (
    <li className="note">
      <button
        type="button"
        aria-current={current || undefined}
        onClick={() => act.choose(hasStep(row) ? { trial: row.trial, step: row.step } : { trial: row.trial })}
        title={hasStep(row) ? `go to the recorded step nearest to ${row.step}` : "written before the first step"}
      >
        <span className="dot" style={{ background: row.color }} />
        <span className="number">{hasStep(row) ? wholeNumber(row.step) : "before"}</span>
        <span className="label" title={when}>
          {start ? `after ${durationText(Math.round(row.time - start))}` : when}
        </span>
        <span className="note-text">
          {named && <span className="label note-trial">{row.trial}</span>}
          {pieces(row.text, query).map((piece, i) => (i % 2 ? <mark key={i}>{piece}</mark> : piece))}
        </span>
      </button>
    </li>
  );
});
