/** Which line is whose. Trials are buttons: hover or focus highlights one in all plots, a click hides it. */
import { act, usePart } from "../../state/page";
import { Button } from "../../ui/parts";
import type { Curve } from "../curves/curves";

export const Legend = ({ curves, label }: { readonly curves: readonly Curve[]; readonly label: string }) => (
  <div className="metric-legend" role="group" aria-label={label}>
    {curves.filter((curve) => !curve.faint).map((curve) => (
      <span key={curve.label}>
        <Line color={curve.color} dashed={curve.dashed} />
        {curve.label}
      </span>
    ))}
  </div>
);

const Line = ({ color, dashed }: { readonly color: string; readonly dashed?: boolean }) => (
  <i className={dashed ? "curves-line dashed" : "curves-line"} style={{ borderColor: color }} />
);

interface Props {
  readonly trials: readonly { readonly name: string; readonly color: string }[];
  readonly onPoint: (trial: string | null) => void;
}

export function TrialLegend({ trials, onPoint }: Props) {
  const { hidden } = usePart((page) => page.metrics);
  const toggle = (name: string): void =>
    act.metrics({ hidden: hidden.includes(name) ? hidden.filter((other) => other !== name) : [...hidden, name] });
  return (
    <div className="metric-legend" role="group" aria-label="Legend">
      {trials.map(({ name, color }) => {
        const shown = !hidden.includes(name);
        return (
          <button
            key={name}
            type="button"
            className={shown ? "metric-trial" : "metric-trial off"}
            aria-pressed={shown}
            title={shown ? `Click hides the curves of ${name}` : `The curves of ${name} are hidden: click shows them`}
            onClick={() => toggle(name)}
            onPointerEnter={() => onPoint(name)}
            onPointerLeave={() => onPoint(null)}
            onFocus={() => onPoint(name)}
            onBlur={() => onPoint(null)}
          >
            <Line color={color} />
            {name}
          </button>
        );
      })}
      {trials.some(({ name }) => hidden.includes(name)) && (
        <Button plain onClick={() => act.metrics({ hidden: [] })}>show all trials</Button>
      )}
    </div>
  );
}
