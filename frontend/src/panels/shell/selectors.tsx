/** Below the bar of views: what is shown of every tensor, and when. Only where there is a choice. */
import { useEffect, useMemo, useState, type FormEvent } from "react";
import { meaning } from "../../model/glossary";
import { wholeNumber } from "../../model/numbers";
import { useTrial } from "../../state/data";
import { act, useChoices, usePart, useShown } from "../../state/page";
import { Button } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { Select } from "../../ui/select";
import { HeatModes, HeatStatistic } from "../graph/controls";
import { ofWords, typeWords } from "./facts";
import { Relaxed } from "./relaxed";
import { nearest, Scrubber } from "./scrubber";
import "./selectors.css";

const MOST_SEGMENTS = 5;
const ANY = "\u0000any";

export function Selectors() {
  const isGraph = usePart((page) => page.tab === "graph");
  return (
    <section className="selectors" aria-label="Selectors">
      <div className="selectors-row">
        {isGraph && <HeatStatistic />}
        <OfChoice />
        {isGraph && <HeatModes />}
      </div>
      <div className="selectors-row">
        <StepField />
        <TypeChoice />
        <Scrubber />
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
      <label className="label" htmlFor="step-number" title={meaning("step")}>step</label>
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
      <Button label="Step before ([)" onClick={() => act.stepBy(-1, false)}>‹</Button>
      <Button label="Step after (])" onClick={() => act.stepBy(1, false)}>›</Button>
    </form>
  );
}

function TypeChoice() {
  const { types } = useChoices("a");
  const { type, relaxed } = useShown("a");
  const wanted = usePart((page) => page.look.type);
  const choices = useMemo(
    () => [{ value: ANY, label: "any type" }, ...types.map((name) => ({ value: name, label: typeWords(name) }))],
    [types],
  );
  if (types.length < 2) return null;
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
      {!isKept && type && <span className="label shortened" title={type}>{type}</span>}
    </>
  );
}

function OfChoice() {
  const { ofs } = useChoices("a");
  const { of, relaxed } = useShown("a");
  const wanted = usePart((page) => page.look.of);
  const choices = useMemo(
    () => ofs.map((value) => ({ value, label: ofWords(value), title: ofSentence(value) })),
    [ofs],
  );
  if (ofs.length < 2) return null;
  const props = { choices, value: of ?? "value", onChange: (value: string) => act.choose({ of: value }) };
  return (
    <Relaxed fields={["of"]} relaxed={relaxed} wanted={wanted}>
      {ofs.length > MOST_SEGMENTS ? (
        <Select label="of the" {...props} />
      ) : (
        <Segments label="of the" {...props} />
      )}
    </Relaxed>
  );
}

const ofSentence = (of: string): string =>
  of === "value" ? "The output of a layer, or the numbers of a parameter."
    : of === "update" ? "The change that the optimizer made to a parameter in this step."
      : of === "gradient" ? "The gradient of all losses together, as the optimizer read it."
        : "The gradient of this loss alone.";
