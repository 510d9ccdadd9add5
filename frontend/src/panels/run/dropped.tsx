/** What is not there: steps left out by choice, thinned later, lost; and everything else that could not be recorded. */
import { useMemo } from "react";
import { askGaps } from "../../api/requests";
import type { Gap } from "../../api/types";
import { percent, wholeNumber } from "../../model/numbers";
import { act } from "../../state/page";
import { useAll } from "../../state/many";
import { Button, Empty, Section } from "../../ui/parts";
import { readReport, thinnedSteps } from "./facts";
import { groupGaps, type GapGroup } from "./gaps";
import { TrialName, type ColoredTrial } from "./trial_name";

export function DroppedSection({ trials }: { readonly trials: readonly ColoredTrial[] }) {
  const gaps = useAll(trials.map(({ trial }) => askGaps(trial.name)));
  return (
    <Section title="what was left out">
      {gaps.problem && <Empty>{gaps.problem}</Empty>}
      {trials.map((one, i) => (
        <div key={one.trial.name}>
          {trials.length > 1 && <TrialName one={one} />}
          <StepCounts one={one} />
          <Gaps trial={one.trial.name} gaps={gaps.values[i] ?? null} />
        </div>
      ))}
    </Section>
  );
}

function StepCounts({ one: { trial } }: { readonly one: ColoredTrial }) {
  const report = readReport(trial);
  const thinned = thinnedSteps(trial.steps);
  const types = Object.entries(report?.steps ?? {});
  return (
    <>
      {types.length > 0 && (
        <table className="run-table">
          <thead>
            <tr>
              <th scope="col">type of step</th>
              <th scope="col" className="count">trained</th>
              <th scope="col" className="count">recorded</th>
              <th scope="col" className="count">share</th>
            </tr>
          </thead>
          <tbody>
            {types.map(([type, { seen, recorded }]) => (
              <tr key={type}>
                <th scope="row">{type || "(no type)"}</th>
                <td className="count number">{wholeNumber(seen)}</td>
                <td className="count number">{wholeNumber(recorded)}</td>
                <td className="count number">{seen > 0 ? percent(recorded / seen) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {report === null && (
        <p className="run-sentence">
          How many steps were passed over{" "}
          {trial.live
            ? "is known when the trial has ended."
            : trial.closed ? "was not written down." : "is lost: the trial was interrupted."}
        </p>
      )}
      {report?.budget && report.budget.refused > 0 && (
        <p className="run-sentence">
          {wholeNumber(report.budget.refused)} steps were left out to stay within the budget: a larger{" "}
          <code>budget</code> records more of them.
        </p>
      )}
      <p className="run-sentence">
        {thinned > 0
          ? `${wholeNumber(thinned)} recorded steps were thinned away, evenly, to stay below max_bytes.`
          : "No recorded step was thinned away."}
      </p>
      {(report?.failedWrites ?? 0) > 0 && (
        <p className="run-sentence">
          {wholeNumber(report?.failedWrites ?? 0)} writes failed, the last one with: {report?.lastFailure}
        </p>
      )}
    </>
  );
}

function Gaps({ trial, gaps }: { readonly trial: string; readonly gaps: readonly Gap[] | null }) {
  const groups = useMemo(() => groupGaps(gaps ?? []), [gaps]);
  if (gaps === null) return null;
  if (groups.length === 0) {
    return <p className="run-sentence">Nothing failed: everything that was asked for is there.</p>;
  }
  return (
    <div className="run-scroll" tabIndex={0} role="group" aria-label={`What could not be recorded of ${trial}`}>
      <table className="run-table">
        <thead>
          <tr>
            <th scope="col">what could not be recorded</th>
            <th scope="col" className="count">times</th>
            <th scope="col">steps</th>
            <th scope="col">where</th>
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => (
            <tr key={group.reason}>
              <th scope="row" title={group.example}>{group.reason}</th>
              <td className="count number">{wholeNumber(group.count)}</td>
              <td><Steps trial={trial} group={group} /></td>
              <td title={group.nodes.join("\n")}>{nodesText(group)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Steps({ trial, group }: { readonly trial: string; readonly group: GapGroup }) {
  const { firstStep, lastStep } = group;
  if (firstStep < 0) return <>–</>;
  const ends = firstStep === lastStep ? [firstStep] : [firstStep, lastStep];
  return (
    <Button plain title="go to the nearest recorded step" onClick={() => act.choose({ trial, step: firstStep })}>
      {ends.map(wholeNumber).join(" to ")}
    </Button>
  );
}

function nodesText({ nodes, ofs }: GapGroup): string {
  if (nodes.length === 0) return "–";
  const more = nodes.length > 2 ? ` and ${nodes.length - 2} more` : "";
  return `${nodes.slice(0, 2).join(", ")}${more}${ofs.length ? ` (${ofs.join(", ")})` : ""}`;
}
