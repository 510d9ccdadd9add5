/** Whose facts follow. */
import type { Trial } from "../../api/types";

export interface ColoredTrial {
  readonly trial: Trial;
  readonly color: string;
}

export const TrialName = ({ one }: { readonly one: ColoredTrial }) => (
  <h4 className="run-trial">
    <span className="dot" style={{ background: one.color }} />
    {one.trial.name}
  </h4>
);
