/** What the colours of the trace show, and whether the passes of a loop are one box. */
import { memo } from "react";
import type { TraceFacts } from "../../api/types";
import { HEAT_KINDS } from "../../model/trace";
import { act, usePart } from "../../state/page";
import { Segments } from "../../ui/segments";
import { Select } from "../../ui/select";
import { heatKind } from "./use_graph";

const HEATS = [
  { value: "", label: "no colours" },
  ...HEAT_KINDS.map(({ name, label }) => ({ value: name, label })),
];
const ROLLS = [
  { value: "each", label: "unrolled", title: "Every pass of a loop has boxes of its own." },
  { value: "rolled", label: "rolled", title: "All passes of a layer are one box; the pass is chosen beside its name." },
] as const;
const OFS = [{ value: "value", label: "values" }, { value: "gradient", label: "gradients" }] as const;

interface Props {
  readonly facts: TraceFacts | null;
  /** Of the selected operation. */
  readonly label: string | null;
}

export const TraceControls = memo(function TraceControls({ facts, label }: Props) {
  const statistic = usePart((page) => page.heat.statistic);
  const { rolled, of } = usePart((page) => page.trace);
  const kind = heatKind(statistic);
  return (
    <>
      <span className="card">
        <Select
          label="colour"
          value={kind?.name ?? ""}
          onChange={(name) => act.heat({ statistic: name, range: null })}
          choices={HEATS}
        />
        {facts?.gradients && kind && !kind.isSum && (
          <Segments quiet label="Colours of" value={of} choices={OFS} onChange={(next) => act.trace({ of: next })} />
        )}
      </span>
      {facts && facts.passes > 1 && (
        <span className="card">
          <Segments
            label="loops"
            value={rolled ? "rolled" : "each"}
            choices={ROLLS}
            onChange={(value) => roll(value === "rolled", label)}
          />
        </span>
      )}
    </>
  );
});

/** Boxes of one kind do not exist in the other: what is open is chosen anew, and the selection is called otherwise. */
function roll(rolled: boolean, label: string | null): void {
  const [, layer, pass] = /^(.*):(\d+)$/.exec(label ?? "") ?? [];
  const chosen = rolled && layer ? { node: layer, pass: Number(pass) } : { node: label, pass: null };
  act.choose(chosen, { transient: true });
  act.page({ trace: { rolled }, open: null, camera: null });
}
