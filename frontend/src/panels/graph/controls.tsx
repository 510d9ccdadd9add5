/** What the colours of the graph show, and which arrows are drawn. */
import { memo } from "react";
import { EVERYTHING, type OpenGroups } from "../../model/folding";
import type { GraphModel } from "../../model/graph";
import { referenceWords } from "../../model/layers/words";
import { heatChoices, heatLabel, SAMPLE_STATISTICS, statisticNamed } from "../../model/statistics";
import { useStatistics } from "../../state/data";
import { act, isComparing, useMainTrial, usePart, useShownPart, type Page } from "../../state/page";
import { Button } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { Select } from "../../ui/select";
import { OtherTrial } from "../layers/controls";
import { useHasBlocks, useOther } from "../layers/use_references";

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
  const trial = useMainTrial();
  const hasBlocks = useHasBlocks(trial);
  const { other, others } = useOther(trial);
  if (heat.statistic === "") return null;
  const unavailable = sample === null ? undefined : "a sample has none: other steps have other samples";
  const modes: { value: Mode; label: string; title: string; unavailable?: string | undefined }[] = [
    { value: "absolute", label: "as it is", title: "The number itself, on one scale for all layers." },
    {
      value: "past", label: referenceWords("past", ""), unavailable,
      title: "Divided by the median of the layer's own earlier recorded steps.",
    },
    ...(hasBlocks ? [{
      value: "blocks" as const, label: referenceWords("blocks", ""), unavailable,
      title: "Divided by the median of the same layer in other blocks, at the same step.",
    }] : []),
    ...(other === null ? [] : [{
      value: "trial" as const, label: referenceWords("trial", other), unavailable,
      title: "Divided by the same layer at the same step of another trial.",
    }]),
    ...(comparing ? [{
      value: "difference" as const, label: "A − B", title: "A minus B, as they are chosen under Compare.",
    }] : []),
  ];
  // What cannot be now is not forgotten: it comes back when it can.
  const now = modes.find(({ value }) => value === heat.mode);
  const shown = !now || now.unavailable ? "absolute" : heat.mode;
  return (
    <>
      <Segments
        label="colour"
        value={shown}
        onChange={(mode) => act.page({ heat: { ...heat, mode, range: null } })}
        choices={modes}
      />
      {shown === "trial" && <OtherTrial other={other} others={others} />}
    </>
  );
});

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
