/** What the colours of the graph show, and which arrows are drawn. */
import { memo } from "react";
import { EVERYTHING, type OpenGroups } from "../../model/folding";
import type { GraphModel } from "../../model/graph";
import { HEAT_STATISTICS, heatStatistic } from "../../model/heat_statistics";
import { act, isComparing, usePart, useShownPart, type Page } from "../../state/page";
import { Button } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { Select } from "../../ui/select";

const NO_OTHER = "there is no B: choose one under Compare (key c)";

type Mode = Page["heat"]["mode"];

const CHOICES = [{ value: "", label: "off" }, ...HEAT_STATISTICS.map(({ name, label }) => ({ value: name, label }))];
const EDGES = [{ value: "selected", label: "selected" }, { value: "all", label: "all" }] as const;

/** Percentiles and negative infinities are known of whole tensors only. */
const OF_SAMPLES = new Set(["mean", "std", "abs_mean", "min", "max", "abs_max", "norm", "zeros", "nans", "infs"]);

export const HeatControls = memo(function HeatControls() {
  const heat = usePart((page) => page.heat);
  const comparing = usePart(isComparing);
  const sample = useShownPart("a", (shown) => shown.sample);
  const known = CHOICES.some((choice) => choice.value === heat.statistic);
  const all = known ? CHOICES : [...CHOICES, { value: heat.statistic, label: heatStatistic(heat.statistic).label }];
  const choices = all.map((choice) =>
    sample === null || !choice.value || OF_SAMPLES.has(choice.value)
      ? choice
      : { ...choice, unavailable: "not recorded per sample" },
  );
  const modes: { value: Mode; label: string; unavailable?: string | undefined }[] = [
    { value: "absolute", label: "absolute" },
    { value: "past", label: "vs. its past", unavailable: pastUnavailable(sample) },
    { value: "difference", label: "A − B", unavailable: comparing ? undefined : NO_OTHER },
  ];
  // What cannot be now is not forgotten: it comes back when it can.
  const shown = modes.find(({ value }) => value === heat.mode)?.unavailable ? "absolute" : heat.mode;
  return (
    <span className="card">
      <Select
        label="heat"
        value={heat.statistic}
        onChange={(statistic) => act.page({ heat: { ...heat, statistic } })}
        choices={choices}
      />
      {heat.statistic !== "" && (
        <Segments
          label="heat shows"
          quiet
          value={shown}
          onChange={(mode) => act.page({ heat: { ...heat, mode } })}
          choices={modes}
        />
      )}
    </span>
  );
});

const pastUnavailable = (sample: number | null): string | undefined =>
  sample === null ? undefined : "a sample has no past: other steps have other samples";

export const EdgeControls = memo(function EdgeControls() {
  const edges = usePart((page) => page.edges);
  return (
    <span className="card">
      <Segments label="edges" value={edges} onChange={(value) => act.page({ edges: value })} choices={EDGES} />
    </span>
  );
});

/** All modules opened or closed at once. */
export function FoldControls({ model, open }: { readonly model: GraphModel; readonly open: OpenGroups }) {
  const groups = model.groups.length - 1;
  if (groups === 0) return null;
  return (
    <>
      <Button
        label="Open all modules"
        disabled={open.size >= groups}
        onClick={() => act.page({ open: [EVERYTHING] })}
      >
        open all
      </Button>
      <Button label="Close all modules" disabled={open.size === 0} onClick={() => act.page({ open: [] })}>
        close all
      </Button>
    </>
  );
}
