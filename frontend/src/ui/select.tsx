/** One of many, as the browser's own list: it opens at once, scrolls, and is searched by typing. */
import { useId } from "react";
import { meaning } from "../model/glossary";
import type { Choice } from "./segments";

interface Props<T extends string> {
  readonly label: string;
  readonly choices: readonly Choice<T>[];
  readonly value: T;
  readonly onChange: (value: T) => void;
  /** The label is read out but not shown. */
  readonly quiet?: boolean;
  readonly numeric?: boolean;
}

export function Select<T extends string>(props: Props<T>) {
  const { label, choices, value, onChange, quiet = false, numeric = false } = props;
  const id = useId();
  return (
    <span className="field">
      <label className={quiet ? "visually-hidden" : "label"} htmlFor={id} title={meaning(label)}>
        {label}
      </label>
      <select
        id={id}
        className={numeric ? "select number" : "select"}
        value={value}
        onChange={(event) => onChange(event.target.value as T)}
      >
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value} disabled={choice.unavailable !== undefined}>
            {choice.label}
            {choice.unavailable === undefined ? "" : ` (${choice.unavailable})`}
          </option>
        ))}
      </select>
    </span>
  );
}
