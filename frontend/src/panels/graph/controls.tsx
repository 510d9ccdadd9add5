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

export const HeatControls = memo(function HeatControls() {
  const heat = usePart((page) => page.heat);
  const comparing = usePart(isComparing);
  const sample = useShownPart("a", (shown) => shown.sample);
  const statistics = useStatistics(useShownPart("a", (shown) => shown.trial));
  const there = [{ value: "", label: "off" }, ...heatChoices(statistics)];
  const known = there.some((choice) => choice.value === heat.statistic);
  const other = { value: heat.statistic, label: heatLabel(statisticNamed(heat.statistic, statistics)) };
  const choices = (known ? there : [...there, other]).map((choice) =>
    sample === null || !choice.value || SAMPLE_STATISTICS.includes(choice.value)
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
