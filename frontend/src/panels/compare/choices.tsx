/** What A and B look at, field by field. Linked fields are the same on both sides; choosing for B alone unlinks. */
import { useEffect, useId, useMemo, useState } from "react";
import { wholeNumber } from "../../model/numbers";
import { heatLabel } from "../../model/statistics";
import { useCatalog, useGraph, useStatistics, useTrial } from "../../state/data";
import {
  act, isComparing, useChoices, usePart, useShown, type Field, type Look, type Pane,
} from "../../state/page";
import { Button } from "../../ui/parts";
import { Select } from "../../ui/select";
import { ofText } from "../tensor/reasons";
import { nearestStep } from "../tensor/time_series";

const FIELDS: readonly Field[] = ["trial", "step", "type", "of", "sample", "node", "role", "pass"];
const NAMES: Partial<Record<Field, string>> = { of: "value or gradient" };

/** One row says it all mostly; what else may differ between A and B unfolds below it. */
export function CompareChoices() {
  const other = usePart((page) => page.other);
  const comparing = usePart(isComparing);
  const trials = useCatalog().value?.trials.filter((trial) => trial.readable).length ?? 0;
  const known = useStatistics(useShown("a").trial);
  const series = usePart((page) => page.series);
  const more = Object.keys(other).filter((field) => field !== "trial" && field !== "step" && field !== "stepType");
  return (
    <div className="compare-choices">
      <Nodes />
      <div className="compare-row">
        <span className="field">
          <b className="side-a">A</b>
          {trials > 1 && <Choice pane="a" field="trial" />}
          <span className="label">step</span> <Choice pane="a" field="step" />
        </span>
        <span className="field">
          <b className="side-b">B</b>
          {trials > 1 && <Choice pane="b" field="trial" />}
          <span className="label">step</span> <Choice pane="b" field="step" />
          <Link field="step" isLinked={!("step" in other)} />
        </span>
        <Button disabled={!comparing} label="Swap A and B" onClick={() => act.swap()}>swap</Button>
        <span className="field"><span className="label">of</span> <Choice pane="a" field="node" /></span>
        <Choice pane="a" field="of" />
        <Select
          label="show"
          value={series.statistic}
          choices={known.filter(({ name }) => name !== "count").map((each) => ({
            value: each.name, label: heatLabel(each),
          }))}
          onChange={(statistic) => act.page({ series: { ...series, statistic } })}
        />
      </div>
      <details className="compare-more" open={more.length > 0 || undefined}>
        <summary>{more.length > 0 ? `A and B differ in ${more.join(", ")}, too` : "more that may differ"}</summary>
        <AllFields other={other} comparing={comparing} />
      </details>
    </div>
  );
}

function AllFields({ other, comparing }: { readonly other: Partial<Look>; readonly comparing: boolean }) {
  const a = useChoices("a");
  const fields = FIELDS.filter((field) => (field === "role" ? a.manyRoles : field === "pass" ? a.manyPasses : true));
  return (
    <table>
      <thead>
        <tr>
          <td />
          {fields.map((field) => (
            <th key={field} scope="col">
              {NAMES[field] ?? field} {field !== "step" && <Link field={field} isLinked={!(field in other)} />}
            </th>
          ))}
          <td className="label">= linked, ≠ on its own</td>
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row"><b className="side-a">A</b></th>
          {fields.map((field) => <td key={field}><Detail pane="a" field={field} /></td>)}
          <td />
        </tr>
        <tr>
          <th scope="row"><b className="side-b">B</b></th>
          {fields.map((field) => (
            <td key={field} className={field in other ? undefined : "linked"}><Detail pane="b" field={field} /></td>
          ))}
          <td>
            <Button disabled={!comparing} onClick={() => act.compare(null)}>link everything</Button>
          </td>
        </tr>
      </tbody>
    </table>
  );
}

/** What stands in the row already is only said again. */
function Detail({ pane, field }: ChoiceProps) {
  const shown = useShown(pane);
  const isInRow = field === "trial" || field === "step" || (pane === "a" && (field === "node" || field === "of"));
  return isInRow ? <span className="label">{shown[field] ?? "–"}</span> : <Choice pane={pane} field={field} />;
}

/** A field of B becomes its own with what it shows now, or follows A again. */
function Link({ field, isLinked }: { readonly field: Field; readonly isLinked: boolean }) {
  const shown = useShown("b");
  const change = (): void => act.compare({ [field]: isLinked ? shown[field] : undefined });
  return (
    <button
      type="button"
      className="link-toggle"
      aria-pressed={isLinked}
      aria-label={`${NAMES[field] ?? field} linked`}
      title={isLinked ? "The same in A and B; click to choose for each alone" : "Chosen for each alone; click to link"}
      onClick={change}
    >
      {isLinked ? "=" : "≠"}
    </button>
  );
}

/** For A as everywhere; for B a choice is its own. */
const choose = (pane: Pane, look: Partial<Look>): void => (pane === "a" ? act.choose(look) : act.compare(look));

interface ChoiceProps {
  readonly pane: Pane;
  readonly field: Field;
}

function Choice({ pane, field }: ChoiceProps) {
  if (field === "step") return <StepChoice pane={pane} />;
  if (field === "node") return <NodeChoice pane={pane} />;
  return <ListChoice pane={pane} field={field} />;
}

const ANY = "\u0000any";

function ListChoice({ pane, field }: ChoiceProps) {
  const shown = useShown(pane);
  const choices = useChoices(pane);
  const catalog = useCatalog().value;
  const type = usePart((page) => (pane === "b" && "type" in page.other ? page.other.type : page.look.type) ?? null);
  const lists: Partial<Record<Field, readonly { value: string; label: string }[]>> = {
    trial: (catalog?.trials ?? []).filter((trial) => trial.readable).map(({ name }) => ({ value: name, label: name })),
    type: [{ value: ANY, label: "any" }, ...choices.types.map((name) => ({ value: name, label: name || "(no type)" }))],
    of: choices.ofs.map((of) => ({ value: of, label: ofText(of) })),
    sample: [
      { value: ANY, label: "whole batch" },
      ...choices.samples.map(({ sample, category }) => ({
        value: String(sample), label: category ? `${sample} · ${category}` : String(sample),
      })),
    ],
    role: choices.roles.map((role) => ({ value: role, label: role || "–" })),
    pass: choices.passes.map((pass) => ({ value: String(pass), label: String(pass) })),
  };
  const value = field === "type" ? type : shown[field];
  const set = (text: string): void => {
    const isNumber = field === "sample" || field === "pass";
    choose(pane, { [field]: text === ANY ? null : isNumber ? Number(text) : text });
  };
  const label = `${NAMES[field] ?? field} of ${pane.toUpperCase()}`;
  const current = value === null ? ANY : String(value);
  return <Select quiet label={label} value={current} choices={lists[field] ?? []} onChange={set} />;
}

function StepChoice({ pane }: { readonly pane: Pane }) {
  const { step, trial } = useShown(pane);
  const isLinked = usePart((page) => pane === "b" && !("step" in page.other));
  const steps = useTrial(trial).value?.steps.number ?? [];
  const [typed, setTyped] = useState<string | null>(null);
  useEffect(() => setTyped(null), [step]);
  const commit = (): void => {
    const number = Number((typed ?? "").replace(/[\s\u202f]/g, ""));
    const found = typed === null || typed.trim() === "" || Number.isNaN(number) ? null : nearestStep(steps, number);
    setTyped(null);
    if (found !== null) choose(pane, { step: found });
  };
  const move = (by: number): void => {
    if (isLinked && step !== null) act.compare({ step }); // moving B alone means that it is no longer linked
    act.stepBy(by, false, pane);
  };
  const side = pane.toUpperCase();
  return (
    <span className="step-choice">
      <input
        className="input number"
        inputMode="numeric"
        aria-label={`step of ${side}`}
        title="Type a number: the nearest recorded step is shown"
        value={typed ?? (step === null ? "" : wholeNumber(step))}
        onChange={(event) => setTyped(event.target.value)}
        onFocus={(event) => event.target.select()}
        onKeyDown={(event) => event.key === "Enter" && commit()}
        onBlur={commit}
      />
      <Button label={`Step of ${side} before`} onClick={() => move(-1)}>‹</Button>
      <Button label={`Step of ${side} after`} onClick={() => move(1)}>›</Button>
    </span>
  );
}

const NODES = "compare-nodes";

/** Names for both inputs, once: there may be thousands. */
function Nodes() {
  const trial = useShown("a").trial;
  const graph = useGraph(trial).value;
  const names = useMemo(() => [...new Set(graph?.graph.nodes.map((node) => node.node) ?? [])], [graph]);
  return <datalist id={NODES}>{names.map((name) => <option key={name} value={name} />)}</datalist>;
}

function NodeChoice({ pane }: { readonly pane: Pane }) {
  const { node } = useShown(pane);
  const [typed, setTyped] = useState<string | null>(null);
  const id = useId();
  useEffect(() => setTyped(null), [node]);
  const commit = (text: string | null): void => {
    if (text !== null && text !== "" && text !== node) choose(pane, { node: text });
    setTyped(null);
  };
  const isKnown = (text: string): boolean =>
    [...(document.getElementById(NODES)?.querySelectorAll("option") ?? [])].some((option) => option.value === text);
  return (
    <input
      id={id}
      className="input node-choice"
      list={NODES}
      aria-label={`node of ${pane.toUpperCase()}`}
      title={node ?? ""}
      spellCheck={false}
      value={typed ?? node ?? ""}
      onFocus={(event) => event.target.select()}
      onChange={(event) => (isKnown(event.target.value) ? commit(event.target.value) : setTyped(event.target.value))}
      onKeyDown={(event) => event.key === "Escape" && setTyped(null)}
      onBlur={() => setTyped(null)}
    />
  );
}
