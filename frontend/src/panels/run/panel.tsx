/** The trial itself: how it was made, what recording cost, what is missing. */
import { useMemo } from "react";
import { wholeNumber } from "../../model/numbers";
import { trialColor, useTrials } from "../../state/page";
import { useCatalog, useTrialsOf } from "../../state/data";
import { Empty, Section } from "../../ui/parts";
import { Tile } from "../../ui/number";
import { dateText, durationText } from "../curves/axes";
import { TabPanel, Waiting } from "../tab_panel";
import { CostSection } from "./cost";
import { DroppedSection } from "./dropped";
import { reasonCounts } from "./facts";
import { SettingsSection, VersionsSection } from "./settings";
import { TrialName, type ColoredTrial } from "./trial_name";
import "./run.css";

export function Panel() {
  const names = useTrials();
  const loaded = useTrialsOf(names);
  const trials = useMemo(
    () => loaded.values.flatMap((trial): ColoredTrial[] => (trial ? [{ trial, color: trialColor(trial.name) }] : [])),
    [loaded],
  );
  if (trials.length === 0) {
    return (
      <TabPanel label="Run">
        {loaded.problem ? <Empty>{loaded.problem}</Empty> : loaded.pending ? <Waiting what="the trial" /> : <NoTrial />}
      </TabPanel>
    );
  }
  return (
    <TabPanel label="Run">
      <div className="run">
        <div className="run-column">
          <Problems trials={trials} />
          <TrialSection trials={trials} />
          <CostSection trials={trials} />
        </div>
        <div className="run-column">
          <SettingsSection trials={trials} />
          <DroppedSection trials={trials} />
          <VersionsSection trials={trials} />
        </div>
      </div>
    </TabPanel>
  );
}

/** A trial that cannot be read is in no list but this one. */
function NoTrial() {
  const catalog = useCatalog().value;
  const broken = catalog?.trials.filter((trial) => !trial.readable) ?? [];
  if (broken.length === 0) {
    return <Empty>There is no trial in {catalog?.root ?? "this folder"}: record one with endoscope.Run.</Empty>;
  }
  return (
    <div className="run">
      <Section title="trials that cannot be read">
        <ul className="run-problems">
          {broken.map((trial) => <li key={trial.name}><b>{trial.name}</b>: {trial.problems.join(" ")}</li>)}
        </ul>
      </Section>
    </div>
  );
}

function Problems({ trials }: { readonly trials: readonly ColoredTrial[] }) {
  const found = trials.flatMap(({ trial }) => trial.problems.map((problem) => ({ name: trial.name, problem })));
  if (found.length === 0) return null;
  return (
    <Section title="problems">
      <ul className="run-problems">
        {found.map(({ name, problem }, i) => (
          <li key={i}>{trials.length > 1 && <b>{name}: </b>}{problem}</li>
        ))}
      </ul>
    </Section>
  );
}

const TrialSection = ({ trials }: { readonly trials: readonly ColoredTrial[] }) => (
  <Section title={trials.length > 1 ? "trials" : "trial"}>
    {trials.map((one) => <TrialFacts key={one.trial.name} one={one} />)}
  </Section>
);

function TrialFacts({ one }: { readonly one: ColoredTrial }) {
  const { trial } = one;
  const { number } = trial.steps;
  const last = number.at(-1);
  const until = last === undefined ? "" : `up to step ${wholeNumber(last)}`;
  const state = trial.live ? "has been running for" : trial.closed ? "ended after" : "was interrupted after";
  const reasons = reasonCounts(trial.steps, trial.reasons);
  const why = reasons.map(([reason, count]) => `${wholeNumber(count)} by ${reason}`).join(", ");
  return (
    <>
      <TrialName one={one} />
      <p className="run-sentence" style={{ marginTop: 2 }}>
        Begun {dateText(trial.created)}; it {state}{" "}
        {durationText(Math.round(trial.updated - trial.created))}.{why && ` Recorded: ${why}.`}
      </p>
      <div className="tiles" style={{ marginTop: 8 }}>
        <Tile name="recorded steps" value={number.length} note={until} />
        <Tile name="with raw values" value={trial.steps.raw.filter(Boolean).length} note="of these steps" />
        <Tile name="tensors" value={trial.tensors} note="different ones" />
        <Tile name="metrics" value={trial.metrics.length} />
        <Tile name="notes" value={trial.notes} />
      </div>
    </>
  );
}
