/** A number in three digits; the exact one on hover, and on copy. */
import type { ClipboardEvent } from "react";
import { exactNumber, shortNumber } from "../model/numbers";

interface Props {
  readonly value: number | null | undefined;
  /** Another way to write it: `61.4 %` for 0.614. */
  readonly text?: string;
  readonly unit?: string;
  /** Why it stands out: the threshold that it has crossed. */
  readonly beyond?: string | undefined;
  /** What to say where there is no number. */
  readonly missing?: string;
}

export function NumberText({ value, text, unit = "", beyond, missing = "–" }: Props) {
  if (value === null || value === undefined) return <span className="number missing">{missing}</span>;
  const exact = exactNumber(value);
  const look = !Number.isFinite(value) ? "number broken" : beyond ? "number beyond" : "number";
  const copy = (event: ClipboardEvent): void => {
    event.clipboardData.setData("text/plain", exact);
    event.preventDefault();
  };
  return (
    <span className={look} title={beyond ? `${exact}${unit}, ${beyond}` : `${exact}${unit}`} onCopy={copy}>
      {text ?? shortNumber(value)}
      {unit}
    </span>
  );
}

interface TileProps extends Props {
  readonly name: string;
  readonly note?: string;
}

/** A statistic with its name, and its spread or threshold below. */
export function Tile({ name, note, ...number }: TileProps) {
  return (
    <dl className={number.beyond ? "tile beyond" : "tile"} style={{ margin: 0 }}>
      <dt>{name}</dt>
      <dd>
        <NumberText {...number} />
        {(note || number.beyond) && <small>{number.beyond ?? note}</small>}
      </dd>
    </dl>
  );
}
