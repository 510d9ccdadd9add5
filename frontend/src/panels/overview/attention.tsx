/** What needs attention, in all trials: one sentence for each cause, the worst first, one click to the place. */
import { useState } from "react";
import type { Finding, OverviewFinding, OverviewFindings } from "../../api/types";
import { sentenceOf, timeWords } from "../../model/findings";
import { wholeNumber } from "../../model/numbers";
import type { OverviewTable } from "../../state/data";
import { act, usePart } from "../../state/page";
import { Mark } from "../findings/mark";
import { Sentence } from "../findings/text";
import { openTrial, showFinding, showIn } from "./open_trial";
import { Strip } from "./strip";

const MOST_LINES = 5;
const MOST_NAMED = 4;

interface Props {
  readonly table: OverviewTable;
  readonly found: OverviewFindings | null;
}

export function Attention({ table, found }: Props) {
  const all = usePart((page) => page.overview.all);
  const lines = found?.findings ?? [];
  const shown = all ? lines : lines.slice(0, MOST_LINES);
  return (
    <section aria-label="What needs attention" className="overview-attention">
      <header>
        <h2>What needs attention</h2>
        <p>{headWords(table, found)}</p>
      </header>
      <div className="overview-card">
        {shown.length > 0 && found && (
          <ol className="overview-findings">
            {shown.map((line) => <Line key={`${line.trial} ${line.finding.id}`} line={line} found={found} />)}
          </ol>
        )}
        <p className="overview-quiet">
          {lines.length > MOST_LINES && (
            <button type="button" className="link" onClick={() => act.page({ overview: { all: !all } })}>
              {all ? "Show only the worst five" : `Show ${lines.length - MOST_LINES} more`}
            </button>
          )}
          <Healthy found={found} table={table} />
        </p>
      </div>
    </section>
  );
}

function headWords({ trials }: OverviewTable, found: OverviewFindings | null): string {
  const running = trials.filter(({ live }) => live).length;
  const words = [`${count(trials.length, "trial")}${running ? `, ${running} running` : ""}`];
  if (found) {
    const of = (severity: string): number => found.findings.filter((line) => line.finding.severity === severity).length;
    if (found.findings.length) {
      words.push(`${count(of("error"), "error")} and ${count(of("warning"), "warning")}${
        trials.length > 1 ? ", each counted once" : ""}, worst first`);
      words.push("a finding is a hint with evidence, not a verdict");
    }
    const checked = found.checked.filter(Boolean).length;
    if (checked < found.trials.length) words.push(`checked ${checked} of ${found.trials.length}`);
  }
  return words.join(" · ");
}

const count = (number: number, word: string): string => `${wholeNumber(number)} ${word}${number === 1 ? "" : "s"}`;

function Line({ line, found }: { readonly line: OverviewFinding; readonly found: OverviewFindings }) {
  const { finding, trial, trials, followers } = line;
  const [isOpen, setOpen] = useState(false);
  const place = found.trials.indexOf(trial);
  const last = found.lastStep[place] ?? null;
  const others = trials.map((each) => found.trials[each]).filter((name) => name !== trial);
  return (
    <li className={`overview-line ${finding.severity}`}>
      <button type="button" className="overview-go" onClick={() => showFinding(trial, finding)}>
        <Mark severity={finding.severity} />
        <span className="overview-say">
          <span><Say finding={finding} /></span>
          <small>
            <b>{trial}</b>{others.length > 0 && ` and ${count(others.length, "other trial")}`}
            {` · ${timeWords(finding, last)}`}
            {finding.also.length > 0 && ` · also at ${count(finding.also.length, "other place")}`}
            {followers > 0 && ` · ${count(followers, "more finding")} probably follow${followers === 1 ? "s" : ""}`}
          </small>
        </span>
        <Strip trial={trial} finding={finding} />
        <span className="overview-where">Show where →</span>
      </button>
      {others.length > 0 && (
        <p className="overview-others">
          {(isOpen ? others : others.slice(0, MOST_NAMED)).map((name) => (
            <button key={name} type="button" className="link" onClick={() => void showIn(name, finding)}>{name}</button>
          ))}
          {others.length > MOST_NAMED && (
            <button type="button" className="link more" onClick={() => setOpen(!isOpen)}>
              {isOpen ? "fewer" : `all ${trials.length} trials`}
            </button>
          )}
        </p>
      )}
    </li>
  );
}

/** What and where; behind it the numbers. */
export function Say({ finding }: { readonly finding: Finding }) {
  const { title, detail } = finding;
  const why = detail.split("; reported")[0].replace(/\.$/, "");
  return (
    <>
      <b><Sentence>{sentenceOf(title)}</Sentence></b>{". "}
      <Sentence>{why}</Sentence>
    </>
  );
}

function Healthy({ found, table }: { readonly found: OverviewFindings | null; readonly table: OverviewTable }) {
  if (!found || !found.checked.some(Boolean)) {
    return <span>{table.trials.length ? "The checks are running; findings appear here." : ""}</span>;
  }
  const clean = found.trials.filter((_, i) =>
    found.checked[i] && !found.problems[i] && found.errors[i] + found.warnings[i] === 0);
  const broken = found.problems.flatMap((problem, i) => (problem ? [{ name: found.trials[i], problem }] : []));
  const upTo = clean.length === 1 ? found.lastStep[found.trials.indexOf(clean[0])] : null;
  return (
    <>
      {clean.length > 0 && (
        <span>
          {found.findings.length === 0 && clean.length === found.trials.length
            ? `${found.checks} checks, nothing found` : "Nothing found"} in{" "}
          {clean.slice(0, 6).map((name, i) => (
            <span key={name}>
              {i > 0 && ", "}
              <button type="button" className="link" onClick={() => void openTrial(name)}>{name}</button>
            </span>
          ))}
          {clean.length > 6 && ` and ${clean.length - 6} more`}
          {upTo !== null && ` up to step ${wholeNumber(upTo)}`}
          {found.findings.length > 0 && ` (${found.checks} checks each)`}.
        </span>
      )}
      {broken.slice(0, 3).map(({ name, problem }) => <span key={name}><b>{name}</b>: {problem}</span>)}
    </>
  );
}
