/** A column beside the graph that shows one of several things. */
import { useId, type KeyboardEvent, type ReactNode } from "react";
import { Side } from "./side";

interface Props<T extends string> {
  readonly label: string;
  /** Name -> what stands on its tab. */
  readonly words: Readonly<Record<T, string>>;
  readonly chosen: T;
  readonly onChoose: (name: T) => void;
  /** Beside the word of a tab. */
  readonly mark?: (name: T) => ReactNode;
  /** Beside the name while the column is folded. */
  readonly aside?: ReactNode;
  /** Pixels of the window. */
  readonly foldBelow: number;
  readonly children: ReactNode;
}

export function SideTabs<T extends string>(props: Props<T>) {
  const { label, words, chosen, onChoose, mark, aside, foldBelow, children } = props;
  const names = Object.keys(words) as T[];
  const id = useId();
  const keys = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const by = event.key === "ArrowRight" ? 1 : names.length - 1;
    const next = (names.indexOf(chosen) + by) % names.length;
    onChoose(names[next]);
    event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")[next].focus();
    event.preventDefault();
  };
  const tabs = (
    <div className="side-tabs" role="tablist" aria-label={label} onKeyDown={keys}>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`${id}${name}`}
          aria-selected={name === chosen}
          aria-controls={`${id}panel`}
          tabIndex={name === chosen ? 0 : -1}
          onClick={() => onChoose(name)}
        >
          {words[name]}
          {mark?.(name)}
        </button>
      ))}
    </div>
  );
  return (
    <Side side="left" title={words[chosen]} head={tabs} aside={aside} foldBelow={foldBelow}>
      <div className="side-panel" role="tabpanel" id={`${id}panel`} aria-labelledby={`${id}${chosen}`}>{children}</div>
    </Side>
  );
}
