/** A column beside the stage that folds away; on narrow screens it begins folded. */
import { useState, type ReactNode } from "react";
import { Button } from "../../ui/parts";
import "./side.css";

interface Props {
  readonly side: "left" | "right";
  readonly title: string;
  /** Stands above; without one, what is inside says what it is. */
  readonly head?: ReactNode;
  /** Beside the name while it is folded. */
  readonly aside?: ReactNode;
  /** Pixels of the window. */
  readonly foldBelow: number;
  readonly children: ReactNode;
}

export function Side({ side, title, head, aside, foldBelow, children }: Props) {
  const [isOpen, setOpen] = useState(() => innerWidth >= foldBelow);
  const arrow = (side === "left") === isOpen ? "‹" : "›";
  const label = isOpen ? `Fold ${title.toLowerCase()}` : `Open ${title.toLowerCase()}`;
  return (
    <aside className={`side ${side}${isOpen ? "" : " folded"}`} aria-label={title}>
      <header className="side-head">
        {isOpen && head}
        <Button plain label={label} onClick={() => setOpen(!isOpen)}>{arrow}</Button>
        {!isOpen && <span className="side-name">{title}</span>}
        {!isOpen && aside}
      </header>
      {isOpen && <div className="side-body">{children}</div>}
    </aside>
  );
}
