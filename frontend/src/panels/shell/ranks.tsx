/** Which rank of the main trial is looked at: all of them together, or one. Only where there are several. */
import { gapsOf, nameOf, splitName, summaryOf } from "../../model/ranks";
import { useCatalog, useStep } from "../../state/data";
import { act, useMainTrial, useShown } from "../../state/page";
import { Select } from "../../ui/select";

const ALL = "all";

export function RankChooser() {
  const name = useMainTrial();
  const trials = useCatalog().value?.trials ?? [];
  const summary = name === null ? undefined : summaryOf(name, trials);
  if (name === null || !summary || summary.ranks.length === 0) return null;
  const { trial, rank } = splitName(name, trials);
  const choices = [
    { value: ALL, label: ALL },
    ...summary.ranks.map((one) => ({ value: String(one), label: `rank ${one}` })),
  ];
  const choose = (value: string): void => act.choose({ trial: nameOf(trial, value === ALL ? null : Number(value)) });
  return (
    <>
      <Select label="ranks" choices={choices} value={rank === null ? ALL : String(rank)} onChange={choose} />
      {rank === null && <Disagreement />}
    </>
  );
}

/** Of how many tensors of the step the ranks have no whole, because they disagree or one is missing. */
function Disagreement() {
  const { trial, step, stepType } = useShown("a");
  const table = useStep(trial, step, stepType).value;
  const { tensors, reasons } = gapsOf(table);
  if (tensors === 0) return null;
  return (
    <span className="label ranks-gaps" title={reasons.join("\n")}>
      {tensors} not whole
    </span>
  );
}
