/** The second row of the page: when, and which aspect. */
import { useEffect, useMemo, useState, type FormEvent, type ReactNode } from "react";
import { wholeNumber } from "../../model/numbers";
import { useTrial } from "../../state/data";
import { statisticName } from "../../model/statistics";
import { AGGREGATES, act, useChoices, usePart, useShown, type Aggregate, type Field } from "../../state/page";
import { Button } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { Select } from "../../ui/select";
import { ofWords, typeWords } from "./facts";
import { nearest, Scrubber } from "./scrubber";

const MOST_SEGMENTS = 5;
const ANY = "\u0000any";

export function Selectors() {
  return (
    <section className="selectors" aria-label="Selectors">
      <div className="selectors-when">
        <div className="selectors-row">
          <StepField />
          <Button label="Step before ([)" onClick={() => act.stepBy(-1, false)}>‹</Button>
          <Button label="Step after (])" onClick={() => act.stepBy(1, false)}>›</Button>
        </div>
        <div className="selectors-row">
          <TypeChoice />
        </div>
      </div>
      <Scrubber />
      <div className="selectors-what">
        <div className="selectors-row">
          <OfChoice />
        </div>
        <div className="selectors-row">
          <BatchChoice />
          <span className="sample">
            <SampleChoice />
          </span>
          <RoleChoice />
          <PassChoice />
        </div>
      </div>
    </section>
  );
}

/** The number of the step, to be typed as well; the nearest recorded one is taken. */
function StepField() {
  const { step, trial, relaxed } = useShown("a");
  const type = usePart((page) => page.look.type);
  const wanted = usePart((page) => page.look.step);
  const described = useTrial(trial).value;
  const [typed, setTyped] = useState<string | null>(null);
  useEffect(() => setTyped(null), [step]);
  const commit = (event: FormEvent): void => {
    event.preventDefault();
    const number = Number((typed ?? "").replace(/[\s\u202f]/g, ""));
    setTyped(null);
    if (!described || typed === null || typed.trim() === "" || !Number.isFinite(number)) return;
    const { number: numbers, type: types } = described.steps;
    const stops = numbers.filter((_, i) => type === null || described.types[types[i]] === type);
    const sorted = stops.sort((a, b) => a - b);
    const at = nearest(sorted, number);
    if (at >= 0) act.choose({ step: sorted[at] });
  };
  return (
    <form className="field" onSubmit={commit}>
      <label className="label" htmlFor="step-number">step</label>
      <Relaxed fields={["step"]} relaxed={relaxed} wanted={wanted}>
        <input
          id="step-number"
          className="input number step-number"
          inputMode="numeric"
          autoComplete="off"
          title="Type a number: the nearest recorded step is shown"
          value={typed ?? (step === null ? "" : wholeNumber(step))}
          onChange={(event) => setTyped(event.target.value)}
          onFocus={(event) => event.target.select()}
          onBlur={() => setTyped(null)}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
      </Relaxed>
    </form>
  );
}

function TypeChoice() {
  const { types } = useChoices("a");
  const { type, relaxed } = useShown("a");
  const wanted = usePart((page) => page.look.type);
  const choices = useMemo(
    () => {
      const named = types.length === 1 && types[0] === "" ? [] : types;
      return [{ value: ANY, label: "any type" }, ...named.map((name) => ({ value: name, label: typeWords(name) }))];
    },
    [types],
  );
  const isKept = wanted !== null && !relaxed.includes("type");
  return (
    <>
      <Relaxed fields={["type"]} relaxed={relaxed} wanted={wanted}>
        <Select
          label="type"
          choices={choices}
          value={isKept ? wanted : ANY}
          onChange={(value) => act.choose({ type: value === ANY ? null : value })}
        />
      </Relaxed>
      {!isKept && type && types.length > 1 && <span className="label shortened" title={type}>{type}</span>}
    </>
  );
}

function OfChoice() {
  const { ofs } = useChoices("a");
  const { of, relaxed } = useShown("a");
  const wanted = usePart((page) => page.look.of);
  const choices = useMemo(() => ofs.map((value) => ({ value, label: ofWords(value) })), [ofs]);
  const props = { choices, value: of ?? "value", onChange: (value: string) => act.choose({ of: value }) };
  return (
    <Relaxed fields={["of"]} relaxed={relaxed} wanted={wanted}>
      {ofs.length > MOST_SEGMENTS ? (
        <Select label="show" {...props} />
      ) : (
        <Segments label="Value, gradient or update" quiet {...props} />
      )}
    </Relaxed>
  );
}

const AGGREGATE_CHOICES = AGGREGATES.map((value) => ({ value, label: statisticName(value) }));

function BatchChoice() {
  const aggregate = usePart((page) => page.look.aggregate);
  const { sample, node } = useShown("a");
  const hasBatch = useChoices("a").samples.length > 0;
  const choose = (value: Aggregate): void => act.choose({ aggregate: value, sample: null });
  const isResting = sample !== null || !hasBatch;
  const title = sample !== null
    ? "A single sample is shown. Choose one of these for the whole batch."
    : hasBatch
      ? "What the values show of every unit, over the samples of the batch. The heat is of all elements of all samples."
      : `${node ?? "It"} has no batch that could be put together.`;
  return (
    <span className={isResting ? "resting" : ""} title={title}>
      <Segments label="batch" choices={AGGREGATE_CHOICES} value={aggregate} onChange={choose} />
    </span>
  );
}

const WHOLE = "whole";

function SampleChoice() {
  const { samples } = useChoices("a");
  const { sample, relaxed, node } = useShown("a");
  const wanted = usePart((page) => page.look.sample);
  const choices = useMemo(
    () => [
      { value: WHOLE, label: "whole batch" },
      ...samples.map(({ sample: n, category }) => ({ value: `${n}`, label: category ? `${n} · ${category}` : `${n}` })),
    ],
    [samples],
  );
  return (
    <Relaxed fields={["sample"]} relaxed={relaxed} wanted={wanted}>
      <Select
        label="sample"
        choices={samples.length ? choices : [{ value: WHOLE, label: node ? "has no samples" : "–" }]}
        value={sample === null ? WHOLE : String(sample)}
        onChange={(value) => act.choose({ sample: value === WHOLE ? null : Number(value) })}
      />
    </Relaxed>
  );
}

function RoleChoice() {
  const { roles, manyRoles } = useChoices("a");
  const { role, relaxed } = useShown("a");
  const wanted = usePart((page) => page.look.role);
  if (!manyRoles) return null;
  return (
    <Relaxed fields={["role"]} relaxed={relaxed} wanted={wanted}>
      <Select
        label="role"
        choices={roles.map((name) => ({ value: name, label: name || "–" }))}
        value={role ?? ""}
        onChange={(value) => act.choose({ role: value })}
      />
    </Relaxed>
  );
}

function PassChoice() {
  const { passes, manyPasses } = useChoices("a");
  const { pass, relaxed } = useShown("a");
  const wanted = usePart((page) => page.look.pass);
  if (!manyPasses) return null;
  return (
    <Relaxed fields={["pass"]} relaxed={relaxed} wanted={wanted}>
      <Select
        label="pass"
        numeric
        choices={passes.map((number) => ({ value: String(number), label: `${number} / ${passes[passes.length - 1]}` }))}
        value={String(pass ?? "")}
        onChange={(value) => act.choose({ pass: Number(value) })}
      />
    </Relaxed>
  );
}

interface RelaxedProps {
  readonly fields: readonly Field[];
  readonly relaxed: readonly Field[];
  readonly wanted: string | number | null;
  readonly children: ReactNode;
}

/** Marks a choice that had to give way to a newer one; it comes back by itself. */
function Relaxed({ fields, relaxed, wanted, children }: RelaxedProps) {
  const isRelaxed = fields.some((field) => relaxed.includes(field));
  const name = wanted === "" ? "none" : wanted;
  const note = isRelaxed ? `You chose ${name}, which a newer choice leaves no room for.` : undefined;
  return (
    <span className={isRelaxed ? "relaxed" : "unrelaxed"} title={note}>
      {children}
      {isRelaxed && <span className="visually-hidden">{note}</span>}
    </span>
  );
}
