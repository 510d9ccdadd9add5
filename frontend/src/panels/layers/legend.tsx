/** The colours with their ends, and how rows and columns stand. */
import { useEffect, useState } from "react";
import { cellText } from "../../model/layers/scale";
import { VALUE } from "../../model/layers/derive";
import { referenceWords } from "../../model/layers/words";
import { shadeTable } from "../../draw/shades";
import { onThemeChange, pageTheme } from "../../draw/theme";
import { act, usePart } from "../../state/page";
import { Segments } from "../../ui/segments";
import { NO_UPDATE } from "./controls";
import type { LayersData } from "./use_layers";

export function Legend({ data }: { readonly data: LayersData }) {
  const { scale, statistic, reference, other, rowsShown, of } = data;
  const columns = usePart((page) => page.layers.columns);
  const [low, high] = [scale.low, scale.high].map((value) => cellText(value, VALUE, scale));
  const isOpenEnded = scale.what === "number" || scale.what === "ratio";
  return (
    <div className="layers-legend">
      <span className="layers-key">
        {statistic?.label}{reference === "absolute" ? "" : `, ${referenceWords(reference, other ?? "")}`}
        <span className="number">{isOpenEnded ? "≤ " : ""}{low}</span>
        <Ramp kind={scale.kind} />
        <span className="number">{isOpenEnded ? "≥ " : ""}{high}</span>
        {reference !== "absolute" && <>neutral = {scale.what === "points" ? "0" : "×1"}</>}
      </span>
      <span className="layers-key"><i className="swatch hatched" aria-hidden="true" />
        {reference === "absolute" ? "not recorded" : "no reference"}</span>
      <span className="layers-key"><i className="swatch nan" aria-hidden="true" />NaN</span>
      <span className="layers-key"><i className="swatch outlined" aria-hidden="true" />finding</span>
      <span className="grow" />
      <Segments
        label="rows"
        choices={[
          { value: "outputs", label: "outputs", unavailable: of === "update" ? NO_UPDATE : undefined },
          { value: "parameters", label: "parameters" },
        ]}
        value={rowsShown}
        onChange={(rows) => act.page({ layers: { rows, open: null } })}
      />
      <Segments
        label="columns"
        choices={[{ value: "true", label: "true" }, { value: "equal", label: "equal" }]}
        value={columns}
        onChange={(next) => act.page({ layers: { columns: next } })}
      />
    </div>
  );
}

/** The map itself, as a gradient of its own colours. */
function Ramp({ kind }: { readonly kind: "linear" | "log" | "diverging" }) {
  const [theme, setTheme] = useState(pageTheme);
  useEffect(() => onThemeChange(() => setTheme(pageTheme())), []);
  const { fill } = shadeTable(kind, theme.scheme, theme.panelRgb);
  const stops = Array.from({ length: 17 }, (_, i) => fill[Math.round((i / 16) * 255)]);
  const background = `linear-gradient(90deg, ${stops.join(", ")})`;
  return <i className="ramp" aria-hidden="true" style={{ background }} />;
}
