/** What the colours of the graph show, and which arrows are drawn. */
import { memo } from "react";
import { EVERYTHING, type OpenGroups } from "../../model/folding";
import type { GraphModel } from "../../model/graph";
import { heatChoices, heatLabel, SAMPLE_STATISTICS, statisticNamed } from "../../model/statistics";
import { useStatistics } from "../../state/data";
import { act, isComparing, usePart, useShownPart, type Page } from "../../state/page";
import { Button } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { Select } from "../../ui/select";

const NO_OTHER = "there is no B: choose one under Compare (key c)";

type Mode = Page["heat"]["mode"];

const EDGES = [{ value: "selected", label: "selected" }, { value: "all", label: "all" }] as const;

export const HeatStatistic = memo(function HeatStatistic() {
  const heat = usePart((page) => page.heat);
  const sample = useShownPart("a", (shown) => shown.sample);
  const statistics = useStatistics(useShownPart("a", (shown) => shown.trial));
  const there = [{ value: "", label: "no colours" }, ...heatChoices(statistics)];
  const known = there.some((choice) => choice.value === heat.statistic);
  const other = { value: heat.statistic, label: heatLabel(statisticNamed(heat.statistic, statistics)) };
  const choices = (known ? there : [...there, other]).map((choice) =>
    sample === null || !choice.value || SAMPLE_STATISTICS.includes(choice.value)
      ? choice
      : { ...choice, unavailable: "not recorded per sample" },
  );
  return (
    <Select
      label="show"
      value={heat.statistic}
      onChange={(statistic) => act.page({ heat: { ...heat, statistic, range: null } })}
      choices={choices}
    />
  );
});

export const HeatModes = memo(function HeatModes() {
  const heat = usePart((page) => page.heat);
  const comparing = usePart(isComparing);
  const sample = useShownPart("a", (shown) => shown.sample);
  if (heat.statistic === "") return null;
  const modes: { value: Mode; label: string; title: string; unavailable?: string | undefined }[] = [
    { value: "absolute", label: "as it is", title: "The number itself, on one scale for all layers." },
    {
      value: "past", label: "vs. own past", unavailable: pastUnavailable(sample),
      title: "Divided by the median of the layer's own earlier recorded steps.",
    },
    {
      value: "difference", label: "vs. B", unavailable: comparing ? undefined : NO_OTHER,
      title: "A minus B, as they are chosen under Compare.",
    },
  ];
  // What cannot be now is not forgotten: it comes back when it can.
  const now = modes.find(({ value }) => value === heat.mode);
  const shown = !now || now.unavailable ? "absolute" : heat.mode;
  return (
    <Segments
      label="colour"
      value={shown}
      onChange={(mode) => act.page({ heat: { ...heat, mode, range: null } })}
      choices={modes}
    />
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
