/** The values themselves: units over the batch, kept samples, scores of one sample; as colours or as numbers. */
import { memo, useEffect, useMemo, useRef, useState } from "react";
import { columnScores, isOrder, ORDERS, orderOf, unitColumnScores, type Order } from "../../model/ordering";
import { adaptChoice, defaultChoice, sliceOf, type SliceChoice } from "../../model/slices";
import { unitScores, unitSteps } from "../../model/spread";
import { statisticName } from "../../model/statistics";
import type { Floats, UnitTable } from "../../state/data";
import { act, AGGREGATES, usePart, type Page, type Pane, type Shown } from "../../state/page";
import { Button, Section } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { Select } from "../../ui/select";
import { list } from "./reasons";
import type { TensorFacts } from "./use_tensor";
import { Values } from "./values";
import { axisNames, rawChoice, unitAxisNames, wishOf } from "./values_choice";
import { Words } from "./words";

interface Props {
  readonly pane: Pane;
  readonly shown: Shown;
  readonly facts: TensorFacts;
  readonly raw: Floats | null;
  readonly units: UnitTable | null;
  /** Why there are no raw values, or none of the chosen sample; empty if there are. */
  readonly whyNoRaw: string;
  readonly whyNoUnits: string;
}

export function ValuesSection(props: Props) {
  const { shown, raw, units, whyNoRaw, whyNoUnits } = props;
  const values = usePart((page) => page.values);
  const hasMap = raw !== null || units !== null;
  return (
    <Section title="values" aside={hasMap && <Choices values={values} />}>
      {units && <UnitValues {...props} units={units} values={values} />}
      {raw && <RawValues {...props} raw={raw} values={values} />}
      {whyNoRaw && <p className="why"><Words text={whyNoRaw} /></p>}
      {whyNoRaw && raw?.samples && shown.sample !== null && <KeptSamples pane={props.pane} samples={raw.samples} />}
      {!units && !raw && shown.sample === null && <p className="why"><Words text={whyNoUnits} /></p>}
    </Section>
  );
}

const MOST_BUTTONS = 6;

/** One click to a sample that can be looked at. */
function KeptSamples({ pane, samples }: { readonly pane: Pane; readonly samples: readonly number[] }) {
  return (
    <span className="controls">
      {samples.slice(0, MOST_BUTTONS).map((sample) => (
        <Button key={sample} onClick={() => act.choose({ sample }, { pane })}>sample {sample}</Button>
      ))}
    </span>
  );
}

const SHOW = [{ value: "map", label: "map" }, { value: "numbers", label: "numbers" }] as const;
const SORTS = [
  { value: "", label: "units as they are" },
  ...ORDERS.map((name) => ({ value: name as string, label: `units by ${statisticName(name)}` })),
];

const Choices = memo(function Choices({ values }: { readonly values: Page["values"] }) {
  const set = (part: Partial<Page["values"]>): void => act.page({ values: { ...values, ...part } });
  return (
    <span className="controls">
      <Select quiet label="Order of units" value={values.sort} choices={SORTS} onChange={(sort) => set({ sort })} />
      <Segments quiet label="Values as" value={values.show} choices={SHOW} onChange={(show) => set({ show })} />
    </span>
  );
});

const AGGREGATE_CHOICES = AGGREGATES.map((value) => ({ value, label: statisticName(value) }));

type UnitProps = Props & { readonly units: UnitTable; readonly values: Page["values"] };

function UnitValues({ pane, shown, facts, units, values, raw }: UnitProps) {
  const { aggregate } = shown;
  const part = useInSight(aggregate);
  const data = useMemo(() => Float32Array.from(units[aggregate]), [units, aggregate]);
  const [wish, setWish] = useState<SliceChoice>(() => defaultChoice(units.shape));
  const choice = useMemo(() => adaptChoice(wish, units.shape), [wish, units.shape]);
  const order = useMemo(() => {
    if (!isOrder(values.sort)) return null;
    const scores = unitColumnScores(units[values.sort], units.shape, units.shape, choice.columns, values.sort);
    return scores && orderOf(scores);
  }, [units, values.sort, choice]);
  // Beside raw values of one sample, the batch is context: a few rows of it are enough.
  const height = raw && shown.sample !== null ? 90 : 180;
  return (
    <div className="values-part" ref={part}>
      <header>
        <span>every unit over the batch</span>
        <Segments
          quiet
          label="Over the batch"
          value={aggregate}
          choices={AGGREGATE_CHOICES}
          onChange={(chosen) => act.choose({ aggregate: chosen }, { pane })}
        />
      </header>
      <Values
        label={`${statisticName(aggregate)} of every unit over the batch`}
        data={data}
        shape={units.shape}
        names={unitAxisNames(facts.shape.length, facts.batchDim, units.shape.length)}
        choice={choice}
        onChoice={setWish}
        show={values.show}
        order={order}
        height={height}
      />
      <UnitsSentence units={units} />
    </div>
  );
}

/** Whoever chooses how the batch is put together sees what that changes, also if it was below the edge. */
function useInSight(choice: string) {
  const element = useRef<HTMLDivElement>(null);
  const before = useRef(choice);
  useEffect(() => {
    if (before.current !== choice) element.current?.scrollIntoView({ block: "nearest" });
    before.current = choice;
  }, [choice]);
  return element;
}

/** What deserves attention: units that never say anything. */
function UnitsSentence({ units }: { readonly units: UnitTable }) {
  const text = useMemo(() => {
    const all = units.mean.length;
    const dead = units.abs_max.reduce((count, most) => count + (most === 0 ? 1 : 0), 0);
    const same = units.std.reduce((count, std) => count + (std === 0 ? 1 : 0), 0) - dead;
    const notes = [dead ? `${dead} always zero` : "", same > 0 ? `${same} the same for all samples` : ""];
    const said = notes.filter(Boolean).join(", ");
    return `${all} units${said ? `: ${said}` : ""}`;
  }, [units]);
  return <p className="label">{text}</p>;
}

type RawProps = Props & { readonly raw: Floats; readonly values: Page["values"] };

const KINDS = [{ value: "values", label: "values" }, { value: "scores", label: "z-scores" }] as const;

function RawValues(props: RawProps) {
  const { shown, facts, raw, units, values } = props;
  const { samples } = raw;
  const [kind, setKind] = useState<"values" | "scores">("values");
  const canScore = samples !== null && units !== null && unitSteps(raw.shape.slice(1), units.shape) !== null;
  const isScored = kind === "scores" && canScore;
  const data = useMemo(() => (isScored && units ? scoresOf(raw, units) : raw.data), [isScored, raw, units]);
  const sampleAt = samples && shown.sample !== null ? samples.indexOf(shown.sample) : -1;
  const choice = useMemo(() => rawChoice(raw.shape, values, sampleAt), [raw.shape, values, sampleAt]);
  const order = useMemo(() => orderFor(values.sort, raw, units, choice), [values.sort, raw, units, choice]);
  const change = (next: SliceChoice, transient: boolean): void => {
    const moved = samples?.[next.at[0]];
    act.page({ values: { ...values, ...wishOf(raw.shape, next, sampleAt) } }, { transient });
    if (sampleAt >= 0 && moved !== undefined && next.at[0] !== choice.at[0]) {
      act.choose({ sample: moved }, { pane: props.pane, transient });
    }
  };
  const placeName = (axis: number, place: number): string =>
    axis === 0 && samples ? String(samples[place] ?? place) : String(place);
  return (
    <div className="values-part">
      <header>
        <span>{samples ? `samples that were kept: ${list(samples)}` : "all elements"}</span>
        {canScore && <Segments quiet label="Show" value={kind} choices={KINDS} onChange={setKind} />}
      </header>
      <Values
        label={isScored ? "Standard deviations from the batch" : "Raw values"}
        data={data}
        shape={raw.shape}
        names={axisNames(facts.shape.length, facts.batchDim, samples !== null).slice(0, raw.shape.length)}
        choice={choice}
        onChoice={change}
        placeName={placeName}
        show={values.show}
        order={order}
        marked={choice.rows === 0 ? sampleAt : -1}
        diverging={isScored}
        height={220}
      />
    </div>
  );
}

/** All kept samples against their units over the whole batch. */
function scoresOf(raw: Floats, units: UnitTable): Float32Array {
  const shape = raw.shape.slice(1);
  const size = shape.reduce((a, b) => a * b, 1);
  const all = new Float32Array(raw.data.length);
  for (let start = 0; start < all.length; start += size) {
    all.set(unitScores(raw.data.subarray(start, start + size), shape, units) ?? [], start);
  }
  return all;
}

/** By what is known of the whole batch where that is possible, else by what is in sight. */
function orderFor(sort: string, raw: Floats, units: UnitTable | null, choice: SliceChoice): Int32Array | null {
  if (!isOrder(sort) || choice.columns < 0) return null;
  const known = units && raw.samples ? knownScores(sort, raw, units, choice) : null;
  return orderOf(known ?? columnScores(sliceOf(raw.data, raw.shape, choice), sort));
}

const knownScores = (sort: Order, raw: Floats, units: UnitTable, choice: SliceChoice): Float64Array | null =>
  unitColumnScores(units[sort], units.shape, raw.shape.slice(1), choice.columns - 1, sort);
