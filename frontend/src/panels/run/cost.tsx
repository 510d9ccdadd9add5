/** What recording cost: in seconds per step over the training, and as a share of its time. */
import { useCallback, useMemo, useState } from "react";
import { percent } from "../../model/numbers";
import { act, useShown } from "../../state/page";
import { Empty, Section } from "../../ui/parts";
import { Tile } from "../../ui/number";
import { Segments } from "../../ui/segments";
import { durationText } from "../curves/axes";
import { Curves, type Curve } from "../curves/curves";
import { nearestStep } from "../metrics/nearest_step";
import { bytesText, costOf, readReport, shareOfTime } from "./facts";
import { TrialName, type ColoredTrial } from "./trial_name";

const AXES = [{ value: "linear", label: "linear" }, { value: "log", label: "log" }] as const;

export function CostSection({ trials }: { readonly trials: readonly ColoredTrial[] }) {
  const [axis, setAxis] = useState<"linear" | "log">("log");
  const { trial: main, step } = useShown("a");
  const curves = useMemo(
    () => trials.map(({ trial, color }): Curve => {
      const { number, seconds } = trial.steps;
      return { label: trials.length > 1 ? trial.name : "seconds", color, x: number, y: seconds };
    }),
    [trials],
  );
  const steps = trials.find(({ trial }) => trial.name === main)?.trial.steps;
  const pick = useCallback(
    (x: number) => {
      const number = steps ? nearestStep(steps, x, "step", 0) : null;
      if (number !== null) act.choose({ step: number });
    },
    [steps],
  );
  const recorded = trials.some(({ trial }) => trial.steps.number.length > 0);
  return (
    <Section
      title="what recording cost"
      aside={recorded && <Segments quiet label="seconds axis" choices={AXES} value={axis} onChange={setAxis} />}
    >
      {!recorded && <Empty>No step is recorded yet, so nothing was spent.</Empty>}
      {recorded && trials.map((one) => <CostTiles key={one.trial.name} one={one} named={trials.length > 1} />)}
      {recorded && (
        <>
          <p className="run-sentence">seconds that recording took, step by step</p>
          <Curves
            curves={curves}
            height={150}
            log={axis === "log"}
            mark={step ?? undefined}
            onPick={pick}
            label="Seconds spent on each recorded step"
          />
        </>
      )}
    </Section>
  );
}

function CostTiles({ one, named }: { readonly one: ColoredTrial; readonly named: boolean }) {
  const { trial } = one;
  const cost = costOf(trial.steps);
  const report = readReport(trial);
  if (!cost) return null;
  const spent = report?.recordingSeconds ?? cost.seconds;
  const lasted = trial.updated - trial.created;
  const share = shareOfTime(trial);
  const limit = report?.budget?.fraction ?? null;
  const isBeyond = limit !== null && share !== null && share > 1.1 * limit;
  return (
    <>
      {named && <TrialName one={one} />}
      <div className="tiles">
        <Tile
          name="share of time"
          value={share}
          text={share === null ? "–" : percent(share)}
          note={limit === null ? "no budget" : `budget ${percent(limit)}`}
          beyond={isBeyond ? `above the budget of ${percent(limit)}` : undefined}
        />
        <Tile
          name="in all"
          value={spent}
          text={durationText(spent)}
          note={lasted > 0 ? `of ${durationText(lasted)}` : ""}
        />
        <Tile name="median step" value={cost.median} text={durationText(cost.median)} />
        <Tile name="slowest step" value={cost.worst} text={durationText(cost.worst)} />
        {report?.writerSeconds != null && (
          <Tile
            name="writing"
            value={report.writerSeconds}
            text={durationText(report.writerSeconds)}
            note="in parallel"
          />
        )}
        {report?.rawBytes != null && (
          <Tile name="raw values" value={report.rawBytes} text={bytesText(report.rawBytes)} note="before packing" />
        )}
      </div>
    </>
  );
}
