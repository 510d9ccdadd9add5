/** A and B on one scale and in one chart; the ratio or the difference beside; where they differ most below. */
import { useMemo } from "react";
import { eitherOf } from "../../model/statistics";
import { useCatalog, useStatistics, useStep, useTrial } from "../../state/data";
import { act, isComparing, useChoices, usePart, useShown, type Look } from "../../state/page";
import { Button, Section } from "../../ui/parts";
import { Distribution } from "../tensor/distribution";
import { distributionOf } from "../tensor/histogram_words";
import { ofText } from "../tensor/reasons";
import { recordedIn, useTensorView, useTogether, type TensorView } from "../tensor/use_tensor";
import { Why } from "../tensor/words";
import { BarsSection, OverTraining } from "./charts";
import { CompareChoices } from "./choices";
import "./compare.css";
import { NumbersTable } from "./numbers_table";
import { comparedNumbers, sideNames, type Side } from "./sides";
import { ValuesPart } from "./values_part";
import { WhereTheyDiffer } from "./worst";

export function Panel() {
  const comparing = usePart(isComparing);
  return (
    <section className="compare" aria-label="Compare">
      <CompareChoices />
      {comparing ? <Sides /> : <Suggestions />}
    </section>
  );
}

function Sides() {
  const [a, b] = [useTensorView("a"), useTensorView("b")];
  const now = { a, b, left: sideOf(a), right: sideOf(b) };
  // Numbers of two sides must be of the same moment, or their difference means nothing.
  const whole = useTogether(now, !isPending(a) && !isPending(b));
  const { left, right } = whole;
  const known = eitherOf(useStatistics(left.shown.trial), useStatistics(right.shown.trial));
  const wanted = usePart((page) => page.series.statistic);
  const names = useMemo(() => sideNames(left.shown, right.shown), [left.shown, right.shown]);
  const [keyA, keyB] = [whole.a.key, whole.b.key];
  const [factsA, factsB] = [whole.a.facts, whole.b.facts];
  const both = useMemo(
    () => (factsA && factsB ? [distributionOf(factsA), distributionOf(factsB)] as const : null),
    [factsA, factsB],
  );
  if (!factsA || !factsB || !keyA || !keyB || !both) {
    const missing = `There is nothing to compare: ${factsA ? "B" : "A"} shows no tensor.`;
    return <div className="compare-start"><Why text={missing} /></div>;
  }
  const isOne = factsA.number("count") === 1;
  const statistic = isOne ? "mean" : wanted;
  const left_ = (of: (name: string) => number): number => of("nans") + of("infs");
  const labels = names.map((name) => name || "the same") as [string, string];
  return (
    <div className="compare-body">
      <OverTraining {...{ statistic, known, labels }} keys={[keyA, keyB]} shown={[left.shown, right.shown]} />
      {!isOne && (
        <>
          <Distribution
            title="histograms"
            distribution={both[0]}
            other={both[1]}
            names={[`A: ${labels[0]}`, `B: ${labels[1]}`]}
            mean={NaN}
            left={left_(factsA.number)}
            otherLeft={left_(factsB.number)}
            areSides
            height={190}
          />
          <BarsSection a={both[0]} b={both[1]} />
        </>
      )}
      <div className="compare-wide">
        <WhereTheyDiffer shown={[left.shown, right.shown]} statistic={statistic} known={known} />
      </div>
      <Section title="statistics, A − B">
        <NumbersTable rows={comparedNumbers(left, right, known)} known={known} />
      </Section>
      <div><ValuesPart left={left} right={right} facts={factsA} /></div>
    </div>
  );
}

const sideOf = ({ shown, facts, samples, raw, units }: TensorView): Side => ({
  shown, number: facts?.number ?? null, samples: samples.value, raw: raw.value, units: units.value,
});

const isPending = ({ step, samples, raw, units }: TensorView): boolean =>
  step.pending || samples.pending || raw.pending || units.pending;

interface Suggestion {
  readonly text: string;
  readonly look: Partial<Look>;
}

/** As long as B is the same as A there is nothing to see: what people ask most is one click away. */
function Suggestions() {
  const found = useSuggestions();
  return (
    <div className="compare-start">
      <p>A and B look at the same tensor. Choose something else for B above, or compare:</p>
      <div className="compare-suggestions">
        {found.map(({ text, look }) => <Button key={text} onClick={() => act.compare(look)}>{text}</Button>)}
      </div>
    </div>
  );
}

function useSuggestions(): Suggestion[] {
  const shown = useShown("a");
  const choices = useChoices("a");
  const table = useStep(shown.trial, shown.step, shown.type).value;
  const ofs = table && shown.node ? recordedIn(table, shown.node).recorded : [];
  const trials = useCatalog().value?.trials ?? [];
  const steps = useTrial(shown.trial).value?.steps.number ?? [];
  const found: Suggestion[] = [];
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const suggest = (text: string, look: Partial<Look>): void => void found.push({ text, look });
  if (first !== undefined && first !== shown.step) suggest(`with the first step, ${first}`, { step: first });
  if (last !== undefined && last !== shown.step) suggest(`with the newest step, ${last}`, { step: last });
  for (const { name, readable } of trials.slice(0, 6)) {
    if (readable && name !== shown.trial) suggest(`with trial ${name}`, { trial: name });
  }
  for (const type of choices.types.slice(0, 6)) {
    if (type !== shown.type) suggest(`with a step of type ${type || "(none)"}`, { type });
  }
  for (const of of ofs.slice(0, 6)) {
    if (of !== shown.of) suggest(`${ofText(shown.of ?? "value")} with ${ofText(of)}`, { of });
  }
  return found;
}
