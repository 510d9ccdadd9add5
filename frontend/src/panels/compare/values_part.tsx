/** Values of A minus those of B, where shapes agree. */
import { useMemo, useState } from "react";
import { adaptChoice, defaultChoice, type SliceChoice } from "../../model/slices";
import { act, usePart } from "../../state/page";
import { Section } from "../../ui/parts";
import type { TensorFacts } from "../tensor/use_tensor";
import { Values } from "../tensor/values";
import { axisNames, rawChoice, wishOf } from "../tensor/values_choice";
import { Words } from "../tensor/words";
import { valuesDifference, type Side } from "./sides";

const NO_SHAPE: readonly number[] = [];

interface ValuesPartProps {
  readonly left: Side;
  readonly right: Side;
  readonly facts: TensorFacts;
}

export function ValuesPart({ left, right, facts: { batchDim, shape: { length: rank } } }: ValuesPartProps) {
  const values = usePart((page) => page.values);
  const { aggregate } = left.shown;
  const { found, title, note } = useMemo(
    () => valuesDifference(left, right, aggregate),
    [left.raw, right.raw, left.units, right.units, left.shown, right.shown, aggregate],
  );
  const [wish, setWish] = useState<SliceChoice>(() => defaultChoice([]));
  const shape = found?.shape ?? NO_SHAPE;
  // Of the same rank as the values of A and B, it is cut in the same way; else it has a choice of its own.
  const isShared = shape.length === rank;
  const choice = useMemo(
    () => (isShared ? rawChoice(shape, values, -1) : adaptChoice(wish, shape)),
    [isShared, values, wish, shape],
  );
  const change = (next: SliceChoice, transient: boolean): void =>
    isShared ? act.page({ values: { ...values, ...wishOf(shape, next, -1) } }, { transient }) : setWish(next);
  const samples = found?.samples ?? null;
  const placeName = (axis: number, place: number): string =>
    axis === 0 && samples ? String(samples[place] ?? place) : String(place);
  const names = axisNames(rank, batchDim, samples !== null || batchDim >= 0);
  return (
    <Section title={title}>
      {found && (
        <Values
          label="Difference of values"
          data={found.data}
          shape={found.shape}
          names={names.slice(names.length - found.shape.length)}
          choice={choice}
          onChoice={change}
          placeName={placeName}
          show={values.show}
          diverging
          height={240}
        />
      )}
      {note && <p className="why"><Words text={note} /></p>}
    </Section>
  );
}
