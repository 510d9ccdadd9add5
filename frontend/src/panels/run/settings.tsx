/** Settings and versions, one column per trial; what differs comes first. */
import { useMemo } from "react";
import { Empty, Section } from "../../ui/parts";
import { factRows, ownSettings, type FactRow } from "./facts";
import type { ColoredTrial } from "./trial_name";

export function SettingsSection({ trials }: { readonly trials: readonly ColoredTrial[] }) {
  const rows = useMemo(() => factRows(trials.map(({ trial }) => ownSettings(trial))), [trials]);
  return (
    <Section title="configuration" aside={difference(rows, trials.length)}>
      {rows.length === 0 ? (
        <Empty>
          No settings were kept. <code>run.config(lr=0.1, data="digits")</code> keeps them with the trial.
        </Empty>
      ) : (
        <FactTable rows={rows} trials={trials} label="Configuration" />
      )}
    </Section>
  );
}

export function VersionsSection({ trials }: { readonly trials: readonly ColoredTrial[] }) {
  const rows = useMemo(() => factRows(trials.map(({ trial }) => Object.entries(trial.versions))), [trials]);
  return (
    <Section title="versions" aside={difference(rows, trials.length)}>
      {rows.length === 0 ? (
        <Empty>The recording does not say with which versions it was made: its first file is damaged.</Empty>
      ) : (
        <FactTable rows={rows} trials={trials} label="Versions" />
      )}
    </Section>
  );
}

function difference(rows: readonly FactRow[], trials: number): string {
  if (trials < 2 || rows.length === 0) return "";
  const count = rows.filter((row) => row.differs).length;
  return count === 0 ? "the same in all trials" : `${count} ${count === 1 ? "differs" : "differ"}`;
}

interface TableProps {
  readonly rows: readonly FactRow[];
  readonly trials: readonly ColoredTrial[];
  readonly label: string;
}

const FactTable = ({ rows, trials, label }: TableProps) => (
  <table className="run-table" aria-label={label}>
    {trials.length > 1 && (
      <thead>
        <tr>
          <th scope="col">name</th>
          {trials.map(({ trial, color }) => (
            <th key={trial.name} scope="col">
              <span className="dot" style={{ background: color, display: "inline-block" }} /> {trial.name}
            </th>
          ))}
        </tr>
      </thead>
    )}
    <tbody>
      {rows.map(({ name, values, differs }) => (
        <tr key={name} className={differs ? "differs" : undefined}>
          <th scope="row">{name}</th>
          {values.map((value, i) => (
            <td key={trials[i].trial.name} className="number">{value ?? "–"}</td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);
