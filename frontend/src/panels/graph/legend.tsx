/** What the colours of the graph mean. */
import { memo } from "react";
import { cssColor, mapOf, type Scheme } from "../../draw/color";
import { HAS_INF, HAS_NAN, ABSENT, VALUE, type Heat, type HeatScale } from "../../model/heat";
import { shortNumber } from "../../model/numbers";
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
      {heat && scale && words && <span className="legend-entry legend-words">{words}</span>}
      {heat && scale && <HeatLegend heat={heat} scale={scale} scheme={scheme} />}
    </div>
  );
});

function HeatLegend({ heat, scale, scheme }: { heat: Heat; scale: HeatScale; scheme: Scheme }) {
  const words = heat.words ?? shortNumber;
  const has = (state: number): boolean => heat.states.includes(state);
  const zeros = scale.kind === "log" && heat.values.some((value, i) => value === 0 && heat.states[i] === VALUE);
  return (
    <>
      <span className="legend-entry" title={scale.kind === "log" ? "logarithmic scale" : `${scale.kind} scale`}>
        <span className="number">{words(scale.low, 2)}</span>
        <i className="ramp" style={{ background: gradient(scale, scheme) }} />
        <span className="number">{words(scale.high, 2)}</span>
        {scale.kind === "log" && <span className="label">log</span>}
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

function gradient(scale: HeatScale, scheme: Scheme): string {
  const colors = mapOf(scale.kind, scheme);
  const stops = Array.from({ length: 17 }, (_, i) => cssColor(colors[Math.round((i / 16) * 255)]));
  return `linear-gradient(to right, ${stops.join(",")})`;
}
