/** The numbers in what an operation returned: statistics, histogram and raw values, as of a recorded tensor. */
import { useMemo } from "react";
import { askTraceNumbers, askTraceValue, type TraceNumbers, type TraceTensor, type TraceValue } from "../../api/trace";
import type { TraceOp } from "../../api/types";
import type { SliceChoice } from "../../model/slices";
import { wholeNumber } from "../../model/numbers";
import { act, usePart } from "../../state/page";
import { useLoaded } from "../../state/resource";
import { Section } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { Select } from "../../ui/select";
import { Distribution } from "../tensor/distribution";
import { distributionOf } from "../tensor/histogram_words";
import { quantileText, tilesOf } from "../tensor/summary";
import { Tiles } from "../tensor/tiles";
import { Values } from "../tensor/values";
import { axisNames, rawChoice, wishOf } from "../tensor/values_choice";
import { Why } from "../tensor/words";

const OFS = [{ value: "value", label: "value" }, { value: "gradient", label: "gradient" }] as const;
const SHOW = [{ value: "map", label: "map" }, { value: "numbers", label: "numbers" }] as const;

export function ValueOf({ op, hasGradients }: { readonly op: TraceOp; readonly hasGradients: boolean }) {
  const trace = usePart((page) => page.trace);
  const output = trace.output < op.outputs.length ? trace.output : 0;
  const of = hasGradients ? trace.of : "value";
  const tensor = useMemo((): TraceTensor => ({ label: op.label, output, of }), [op.label, output, of]);
  const known = useLoaded(askTraceValue(tensor));
  if (op.outputs.length === 0) return <Why text="It returned no tensor." />;
  const several = op.outputs.map(({ shape }, i) => ({ value: String(i), label: `${i}: [${shape.join(", ")}]` }));
  return (
    <>
      {(hasGradients || several.length > 1) && (
        <div className="section tensor-choices trace-which">
          {hasGradients && (
            <Segments
              quiet
              label="What is shown"
              value={of}
              choices={OFS}
              onChange={(next) => act.trace({ of: next })}
            />
          )}
          {several.length > 1 && (
            <Select
              label="output"
              choices={several}
              value={String(output)}
              onChange={(next) => act.trace({ output: Number(next) })}
            />
          )}
        </div>
      )}
      {known.problem && <Why text={known.problem} />}
      {known.value && <Shown tensor={tensor} value={known.value} dtype={op.outputs[output].dtype} />}
    </>
  );
}

interface Props {
  readonly tensor: TraceTensor;
  readonly value: TraceValue;
  readonly dtype: string;
}

function Shown({ tensor, value, dtype }: Props) {
  const { number, histogram } = value;
  const tiles = useMemo(() => tilesOf({ whole: number, samples: null, sample: null }), [number]);
  const distribution = useMemo(() => distributionOf({ histogram, dtype, number }), [histogram, dtype, number]);
  const count = number("count");
  if (count === 0) return <Why text="It has no elements." />;
  return (
    <>
      <div className="tensor-pair">
        <Section title="statistics"><Tiles tiles={tiles} /></Section>
        {count > 1 && (
          <Distribution
            distribution={distribution}
            other={null}
            names={["all elements", ""]}
            mean={number("mean")}
            left={number("nans") + number("infs")}
            note={quantileText(number)}
          />
        )}
      </div>
      {count > 1 && <Raw tensor={tensor} />}
    </>
  );
}

function Raw({ tensor }: { readonly tensor: TraceTensor }) {
  const loaded = useLoaded(askTraceNumbers(tensor));
  const values = usePart((page) => page.values);
  const show = (next: "map" | "numbers"): void => act.page({ values: { ...values, show: next } });
  return (
    <Section
      title="values"
      aside={<Segments quiet label="Values as" value={values.show} choices={SHOW} onChange={show} />}
    >
      {loaded.problem && <Why text={loaded.problem} />}
      {loaded.value && <Numbers numbers={loaded.value} />}
    </Section>
  );
}

function Numbers({ numbers }: { readonly numbers: TraceNumbers }) {
  const values = usePart((page) => page.values);
  const { data, shape, whole } = numbers;
  const choice = useMemo(() => rawChoice(shape, values, -1), [shape, values]);
  const change = (next: SliceChoice, transient: boolean): void =>
    act.page({ values: { ...values, ...wishOf(shape, next, -1) } }, { transient });
  const left = whole.flatMap((size, axis) => (shape[axis] < size ? [{ axis, size }] : []));
  return (
    <>
      <Values
        label="Values"
        data={data}
        shape={shape}
        names={axisNames(shape.length, -1, false)}
        choice={choice}
        onChoice={change}
        show={values.show}
        height={220}
      />
      {left.map(({ axis, size }) => (
        <p key={axis} className="label">
          The tensor is large: of axis {axis} the first {wholeNumber(shape[axis])} of {wholeNumber(size)} places are
          shown. Statistics and histogram are of all elements.
        </p>
      ))}
    </>
  );
}
