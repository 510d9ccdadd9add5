/** One of a few: all choices are in sight. Radio buttons underneath, so arrow keys and screen readers just work. */
import { useId } from "react";
import { meaning } from "../model/glossary";
import "./segments.css";

export interface Choice<T extends string> {
  readonly value: T;
  readonly label: string;
  /** Why it cannot be chosen now; shown on hover. */
  readonly unavailable?: string | undefined;
  /** A sentence on what it does; shown on hover. */
  readonly title?: string | undefined;
}

interface Props<T extends string> {
  readonly label: string;
  readonly choices: readonly Choice<T>[];
  readonly value: T;
  readonly onChange: (value: T) => void;
  /** The label is read out but not shown. */
  readonly quiet?: boolean;
}

export function Segments<T extends string>({ label, choices, value, onChange, quiet = false }: Props<T>) {
  const name = useId();
  return (
    <span className="field" role="radiogroup" aria-label={label}>
      {!quiet && <span className="label" title={meaning(label)}>{label}</span>}
      <span className="segments">
        {choices.map((choice) => (
          <label key={choice.value} title={choice.unavailable ?? choice.title}>
            <input
              type="radio"
              name={name}
              value={choice.value}
              checked={choice.value === value}
              disabled={choice.unavailable !== undefined}
              onChange={() => onChange(choice.value)}
            />
            {choice.label}
          </label>
        ))}
      </span>
    </span>
  );
}
