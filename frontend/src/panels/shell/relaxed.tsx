/** Marks a choice that had to give way to a newer one; it comes back by itself. */
import type { ReactNode } from "react";
import type { Field } from "../../state/page";

interface RelaxedProps {
  readonly fields: readonly Field[];
  readonly relaxed: readonly Field[];
  readonly wanted: string | number | null;
  readonly children: ReactNode;
}

export function Relaxed({ fields, relaxed, wanted, children }: RelaxedProps) {
  const isRelaxed = fields.some((field) => relaxed.includes(field));
  const name = wanted === "" ? "none" : wanted;
  const note = isRelaxed ? `You chose ${name}, which a newer choice leaves no room for.` : undefined;
  return (
    <span className={isRelaxed ? "relaxed" : "unrelaxed"} title={note}>
      {children}
      {isRelaxed && <span className="visually-hidden">{note}</span>}
    </span>
  );
}
