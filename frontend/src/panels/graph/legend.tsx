/** What the colours of the graph mean. */
import { memo } from "react";
import type { Scheme } from "../../draw/color";
import { HAS_INF, HAS_NAN, ABSENT, VALUE, type Heat, type HeatScale } from "../../model/heat";
import { shortNumber } from "../../model/numbers";
import { act } from "../../state/page";
import { ScaleBar } from "./scale_bar";
import { KINDS, type Kind } from "../../model/source";

interface Props {
  /** Kinds that occur; others would only take room. */
  readonly kinds: ReadonlySet<Kind>;
  readonly heat: Heat | null;
  readonly scale: HeatScale | null;
  readonly scheme: Scheme;
  readonly words?: string | undefined;
}

export const Legend = memo(function Legend({ kinds, heat, scale, scheme, words }: Props) {
  return (
    <div className="card legend" role="group" aria-label="Legend">
      {KINDS.filter((kind) => kinds.has(kind)).map((kind) => (
        <span key={kind} className="legend-entry">
          <i className="swatch" style={{ background: `var(--kind-${kind})` }} />
          {kind}
        </span>
      ))}
      {heat && scale && (
        <div className="legend-heat">
          {words && <span className="legend-entry legend-words">{words}</span>}
          <HeatLegend heat={heat} scale={scale} scheme={scheme} />
        </div>
      )}
    </div>
  );
});

interface HeatProps {
  readonly heat: Heat;
  readonly scale: HeatScale;
  readonly scheme: Scheme;
}

const onRange = (range: readonly [number, number] | null, dragging: boolean): void =>
  act.heat({ range }, { transient: dragging });

function HeatLegend({ heat, scale, scheme }: HeatProps) {
  const words = heat.words ?? shortNumber;
  const has = (state: number): boolean => heat.states.includes(state);
  const zeros = scale.kind === "log" && heat.values.some((value, i) => value === 0 && heat.states[i] === VALUE);
  return (
    <>
      <span className="legend-entry">
        <ScaleBar scale={scale} scheme={scheme} words={words} onRange={onRange} />
      </span>
      {zeros && <Special color={"var(--zero)"} name="zero" />}
      {has(HAS_NAN) && <Special color={striped("var(--nan)", "#00000073", -45)} name="NaN" />}
      {has(HAS_INF) && <Special color={striped("var(--infinity)", "#00000073", 45)} name="Inf" />}
      {has(ABSENT) && <Special color={striped("var(--panel)", "var(--hatch)", 45)} name="no value" />}
    </>
  );
}

const Special = ({ color, name }: { readonly color: string; readonly name: string }) => (
  <span className="legend-entry">
    <i className="swatch framed" style={{ background: color }} />
    {name}
  </span>
);

const striped = (base: string, line: string, degrees: number): string =>
  `repeating-linear-gradient(${degrees}deg, ${base} 0 2.5px, ${line} 2.5px 3.7px)`;
