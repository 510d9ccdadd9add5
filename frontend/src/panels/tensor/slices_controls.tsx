/** Which two axes of a tensor are spread out, and which place is taken on each of the others. */
import { useId } from "react";
import { chooseAxis, type SliceChoice } from "../../model/slices";
import { Button } from "../../ui/parts";
import { Select } from "../../ui/select";

export interface SliceControlsProps {
  readonly shape: readonly number[];
  /** What the axes are called. */
  readonly names: readonly string[];
  readonly choice: SliceChoice;
  /** `transient`: the slider is still being moved. */
  readonly onChoice: (choice: SliceChoice, transient: boolean) => void;
  /** What a place on an axis is called, if not by its number: samples that were kept. */
  readonly placeName: (axis: number, place: number) => string;
}

export function SliceControls(props: SliceControlsProps) {
  const { shape, names, choice, onChoice } = props;
  if (shape.length < 2) return null;
  const axes = shape.map((size, axis) => ({ value: String(axis), label: `${names[axis]} (${size})` }));
  const swap = (): void => onChoice({ ...choice, rows: choice.columns, columns: choice.rows }, false);
  const others = shape.flatMap((_, axis) => (axis === choice.rows || axis === choice.columns ? [] : [axis]));
  return (
    <div className="slice-controls">
      {shape.length > 2 && (
        <span className="slice-axes">
          <Select
            label="rows"
            value={String(choice.rows)}
            choices={axes}
            onChange={(axis) => onChoice(chooseAxis(choice, "rows", Number(axis)), false)}
          />
          <Button plain label="Swap rows and columns" onClick={swap}>⇄</Button>
          <Select
            label="columns"
            value={String(choice.columns)}
            choices={axes}
            onChange={(axis) => onChoice(chooseAxis(choice, "columns", Number(axis)), false)}
          />
        </span>
      )}
      {others.map((axis) => <Place key={axis} axis={axis} {...props} />)}
    </div>
  );
}

function Place({ axis, shape, names, choice, onChoice, placeName }: SliceControlsProps & { readonly axis: number }) {
  const id = useId();
  const place = choice.at[axis];
  const move = (to: number, transient: boolean): void =>
    onChoice({ ...choice, at: choice.at.map((old, i) => (i === axis ? to : old)) }, transient);
  return (
    <span className="slice-place">
      <label className="label" htmlFor={id}>{names[axis]}</label>
      <input
        id={id}
        type="range"
        min={0}
        max={Math.max(0, shape[axis] - 1)}
        value={place}
        disabled={shape[axis] < 2}
        aria-valuetext={placeName(axis, place)}
        onChange={(event) => move(event.target.valueAsNumber, true)}
        onPointerUp={(event) => move(event.currentTarget.valueAsNumber, false)}
        onKeyUp={(event) => move(event.currentTarget.valueAsNumber, false)}
      />
      <span className="number">{placeName(axis, place)}</span>
    </span>
  );
}
