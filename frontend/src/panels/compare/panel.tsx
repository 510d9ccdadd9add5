/** Two tensors side by side, linked where the user wants it, and what is between them. */
import { useCatalog, useStep, useTrial } from "../../state/data";
import { act, isComparing, useChoices, usePart, useShown, type Look } from "../../state/page";
import { Button, SectionOwner } from "../../ui/parts";
import { ofText } from "../tensor/reasons";
import { TensorPanel } from "../tensor/panel";
import { recordedIn, useTensorView } from "../tensor/use_tensor";
import { CompareChoices } from "./choices";
import "./compare.css";
import { DifferenceColumn } from "./difference";

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
  const a = useTensorView("a");
  const b = useTensorView("b");
  return (
    <div className="compare-sides">
      <div className="compare-side a">
        <b className="side-a">A</b>
        <SectionOwner value="A"><TensorPanel pane="a" /></SectionOwner>
      </div>
      <div className="compare-side b">
        <b className="side-b">B</b>
        <SectionOwner value="B"><TensorPanel pane="b" /></SectionOwner>
      </div>
      <div className="compare-side"><DifferenceColumn a={a} b={b} /></div>
    </div>
  );
}

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
