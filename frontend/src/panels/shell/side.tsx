/** A column beside the stage that folds away; on narrow screens it begins folded. */
import { useState, type ReactNode } from "react";
import { Button } from "../../ui/parts";

interface Props {
  readonly side: "left" | "right";
  readonly title: string;
  /** The name stands above; otherwise what is inside says what it is. */
  readonly heading?: boolean;
  /** Pixels of the window. */
  readonly foldBelow: number;
  readonly children: ReactNode;
}

export function Side({ side, title, heading = false, foldBelow, children }: Props) {
  const [isOpen, setOpen] = useState(() => innerWidth >= foldBelow);
  const arrow = (side === "left") === isOpen ? "‹" : "›";
  const label = isOpen ? `Fold ${title.toLowerCase()}` : `Open ${title.toLowerCase()}`;
  return (
    <aside className={`side ${side}${isOpen ? "" : " folded"}`} aria-label={title}>
      <header className="side-head">
        {isOpen && heading && <h2>{title}</h2>}
        <Button plain label={label} onClick={() => setOpen(!isOpen)}>{arrow}</Button>
        {!isOpen && <span className="side-name">{title}</span>}
      </header>
      {isOpen && <div className="side-body">{children}</div>}
    </aside>
  );
}
