/** Small parts: buttons, chips, sections, keys, empty states. */
import { createContext, useContext, type ReactNode } from "react";

interface ButtonProps {
  readonly children: ReactNode;
  readonly onClick: () => void;
  readonly label?: string;
  readonly title?: string;
  readonly pressed?: boolean;
  readonly disabled?: boolean;
  readonly plain?: boolean;
}

export function Button({ children, onClick, label, title, pressed, disabled, plain }: ButtonProps) {
  return (
    <button
      type="button"
      className={plain ? "button plain" : "button"}
      aria-label={label}
      title={title ?? label}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onClick}
    >
      {children}
    </button>
  );
}

export function Chip({ color, children }: { readonly color?: string; readonly children: ReactNode }) {
  return (
    <span className="chip">
      {color && <span className="dot" style={{ background: color }} />}
      {children}
    </span>
  );
}

interface SectionProps {
  readonly title: string;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

/** Two panels of the same kind are on screen: the names of their sections say whose they are. */
export const SectionOwner = createContext("");

export function Section({ title, aside, children }: SectionProps) {
  const owner = useContext(SectionOwner);
  return (
    <section className="section" aria-label={owner ? `${title} of ${owner}` : title}>
      <header>
        <h3>{title}</h3>
        {aside !== undefined && <span>{aside}</span>}
      </header>
      {children}
    </section>
  );
}

/** Nothing to show is something to explain: one sentence, and what can be done about it. */
export function Empty({ children, action }: { readonly children: ReactNode; readonly action?: ReactNode }) {
  return (
    <div className="empty" role="note">
      <span>{children}</span>
      {action}
    </div>
  );
}

export const Key = ({ children }: { readonly children: ReactNode }) => <kbd>{children}</kbd>;
