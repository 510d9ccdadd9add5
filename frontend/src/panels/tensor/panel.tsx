/**
 * The right side of the page: everything about the selected tensor. Canvases stay while steps and nodes change; only
 * what they draw is replaced, and only when it is there.
 */
import { useMemo } from "react";
import { SAMPLE_STATISTICS } from "../../model/statistics";
import type { Distribution } from "../../model/density";
import { histogramOf } from "../../model/histogram";
import { useCatalog, useGaps, type Floats, type SampleTable } from "../../state/data";
import { isBare, usePart, type Look, type Pane, type Shown } from "../../state/page";
import { Section } from "../../ui/parts";
import { Distribution as HistogramSection } from "./distribution";
import { Header } from "./header";
import { distributionOf, isWholeType } from "./histogram_words";
import { relaxedSentences } from "./notices";
import { OverTime, OverTimeAhead } from "./over_time";
import { whyNoRaw, whyNoSamples, whyNoTensor, whyNoTensors, whyNotThisSample, whyNoUnits } from "./reasons";
import { SampleAgainstBatch } from "./sample";
import { cosinesOf, quantileText, sampleRows, tilesOf } from "./summary";
import "./tensor.css";
import { Tiles } from "./tiles";
import {
  isScalar, isScalarIn, recordedIn, useKeepsRaw, useTensorView, useTogether, type TensorFacts, type TensorView,
} from "./use_tensor";
import { ValuesSection } from "./values_section";
import { Why, Words } from "./words";

export function TensorPanel({ pane }: { readonly pane: Pane }) {
  const view = useTensorView(pane);
  const { shown, key, facts, step } = view;
  const problem = step.problem && !step.value;
  return (
    <section
      className="tensor"
      aria-label={pane === "a" ? "Selected tensor" : "Tensor B"}
      data-pending={isPending(view) || undefined}
    >
      {shown.node !== null && (
        <Header
          node={shown.node}
          kind={facts?.kind ?? ""}
          dtype={facts?.dtype ?? ""}
          shape={facts?.shape ?? null}
          module={facts?.module ?? ""}
          source={facts?.source ?? ""}
          pane={pane}
        />
      )}
      <Notices pane={pane} view={view} />
      {key && !step.value && step.pending && <OverTimeAhead tensor={key} />}
      {problem && <Why text={`This step cannot be read: ${step.problem}`} />}
      {!problem && (shown.node === null || !key) && <NothingYet shown={shown} pending={step.pending} />}
      {!problem && key && step.value && !facts && <Missing view={view} />}
      {facts?.number("count") === 0 && <Why text={`It has no elements: its shape is [${facts.shape.join(", ")}].`} />}
      {facts && key && facts.number("count") !== 0 && (
        <>
          <Numbers view={view} facts={facts} />
          <OverTime
            pane={pane}
            shown={shown}
            tensor={key}
            isScalar={isScalar(facts, shown.sample)}
            isScalarToo={(other, sample) => isScalarIn(step.value, other, sample)}
            isWhole={isWholeType(facts.dtype)}
            pieces={facts.pieces}
          />
          {facts.number("count") !== 1 && <ValuesOf pane={pane} view={view} facts={facts} />}
        </>
      )}
    </section>
  );
}

const isPending = ({ step, samples, units, raw }: TensorView): boolean =>
  step.pending || samples.pending || units.pending || raw.pending;

function NothingYet({ shown, pending }: { readonly shown: Shown; readonly pending: boolean }) {
  const catalog = useCatalog();
  if (pending || catalog.pending) return null;
  if (shown.trial !== null && shown.step !== null && isBare(shown.trial, shown.step, shown.type)) {
    return <Why text={whyNoTensors(shown.step, shown.type ?? "")} />;
  }
  if (catalog.value?.trials.every((trial) => trial.steps === 0)) {
    return <Why text="Nothing was recorded yet: the first recorded step will appear here by itself." />;
  }
  return <Why text="No tensor is selected: click a node of the graph, or press `/` to search for one." />;
}

function Missing({ view: { shown, step, key } }: { readonly view: TensorView }) {
  if (!step.value || !key || step.pending) return null;
  const { node, of, role, pass } = key;
  const where = { step: shown.step ?? 0, type: shown.type ?? "" };
  return <Why text={whyNoTensor({ node, of, role, pass, ...where, ...recordedIn(step.value, node) })} />;
}

function Notices({ pane, view: { shown, step } }: { readonly pane: Pane; readonly view: TensorView }) {
  const look = usePart((page) => page.look);
  const other = usePart((page) => page.other);
  const table = step.value;
  if (shown.relaxed.length === 0 || !table || step.pending) return null;
  const wanted: Look = pane === "b" ? { ...look, ...other } : look;
  const sentences = relaxedSentences(wanted, shown, (node) => recordedIn(table, node));
  return (
    <div className="notices" role="status">
      {sentences.map((text) => <p key={text}><Words text={text} /></p>)}
    </div>
  );
}

interface NumbersProps {
  readonly view: TensorView;
  readonly facts: TensorFacts;
}

/** Tiles, histogram, and the chosen sample among the others: parts that change together. */
function Numbers({ view, facts }: NumbersProps) {
  const pending = view.step.pending || view.samples.pending;
  const now = { facts, shown: view.shown, samples: view.samples.value, extra: view.step.value?.facts.extra ?? {} };
  const { facts: own, shown, samples, extra } = useTogether(now, !pending);
  const { node, role, pass, of, sample } = shown;
  const tiles = useMemo(
    () => [
      ...tilesOf({ whole: own.number, samples, sample }),
      ...cosinesOf(extra, node ?? "", role ?? "", pass ?? 0, of ?? ""),
    ],
    [own, samples, sample, extra, node, role, pass, of],
  );
  const one = useMemo(
    () => sampleDistribution(view.raw.value, sample, isWholeType(own.dtype)),
    [view.raw.value, sample, own.dtype],
  );
  const whole = useMemo(() => distributionOf(own), [own]);
  return (
    <div className="tensor-pair">
      <Section
        title={sample === null ? "statistics" : `statistics · sample ${sample}`}
        aside={samples && sample === null ? "± over the batch" : undefined}
      >
        <Tiles tiles={tiles} />
      </Section>
      {sample !== null && <OneSample samples={samples} sample={sample} facts={own} />}
      {own.number("count") !== 1 && (
        <HistogramSection
          distribution={whole}
          other={one}
          names={[own.batchDim >= 0 ? "whole batch" : "all elements", `sample ${sample}`]}
          mean={own.number("mean")}
          left={own.number("nans") + own.number("infs")}
          note={!one && <Quantiles facts={own} />}
        />
      )}
    </div>
  );
}

/** Of the parts of several ranks they do not follow, so they are read off the histogram. */
function Quantiles({ facts: { number, pieces } }: { readonly facts: TensorFacts }) {
  const text = quantileText(number);
  if (pieces <= 1 || !text) return text;
  const title = `put together from ${pieces} ranks: quantiles are read off the histogram, to within one bin`;
  return <span title={title}>≈ {text}</span>;
}

const ONE = ["mean"];

function OneSample({ samples, sample, facts }: {
  readonly samples: SampleTable | null;
  readonly sample: number;
  readonly facts: TensorFacts;
}) {
  const names = isScalar(facts, sample) ? ONE : SAMPLE_STATISTICS;
  const rows = useMemo(() => (samples ? sampleRows(samples, sample, names) : []), [samples, sample, names]);
  return (
    <Section title={`sample ${sample} against the batch`}>
      {rows.length > 0
        ? <SampleAgainstBatch rows={rows} />
        : <p className="why"><Words text={whyNoSamples(facts.batchDim >= 0, facts.kind)} /></p>}
    </Section>
  );
}

/** Of a sample that was kept raw; null for all others. */
function sampleDistribution(raw: Floats | null, sample: number | null, isWhole: boolean): Distribution | null {
  const at = raw?.samples && sample !== null ? raw.samples.indexOf(sample) : -1;
  if (!raw || at < 0) return null;
  const size = raw.shape.slice(1).reduce((a, b) => a * b, 1);
  const values = raw.data.subarray(at * size, (at + 1) * size);
  const finite = values.filter(Number.isFinite).sort();
  return { histogram: histogramOf(values), min: finite[0], max: finite[finite.length - 1], isWhole };
}

interface ValuesOfProps {
  readonly pane: Pane;
  readonly view: TensorView;
  readonly facts: TensorFacts;
}

function ValuesOf({ pane, view, facts }: ValuesOfProps) {
  const { raw, units, step } = view;
  const pending = step.pending || raw.pending || units.pending;
  const about = step.value?.facts ?? null;
  const whole = useTogether({ facts, shown: view.shown, raw: raw.value, units: units.value, about }, !pending);
  const stepHasRaw = useKeepsRaw(whole.shown);
  const gap = useGap(whole.facts.raw ? null : whole.shown);
  const { sample, step: number } = whole.shown;
  const rawSamples = whole.about?.rawSamples ?? [];
  const hasSamples = whole.facts.batchDim >= 0;
  const kept = whole.raw?.samples ?? null;
  const lacksSample = sample !== null && kept !== null && !kept.includes(sample);
  const why = whole.raw
    ? lacksSample ? whyNotThisSample(sample, kept) : ""
    : raw.problem ?? whyNoRaw({
        step: number ?? 0, stepHasRaw, sample, rawSamples, hasSamples, gap,
      });
  return (
    <ValuesSection
      pane={pane}
      shown={whole.shown}
      facts={whole.facts}
      raw={whole.raw}
      units={whole.units}
      whyNoRaw={why}
      whyNoUnits={whyNoUnits(hasSamples)}
    />
  );
}

/** What the recording says about raw values that it left out. */
function useGap(shown: Shown | null): string {
  const gaps = useGaps(shown?.trial ?? null).value;
  return useMemo(() => {
    if (!shown || !gaps) return "";
    const of = shown.of === "value" ? ["value", "parameter"] : [shown.of];
    const found = gaps.filter((gap) => gap.node === shown.node && of.includes(gap.of) && gap.reason.includes("raw"));
    return (found.find((gap) => gap.step === shown.step) ?? found[0])?.reason ?? "";
  }, [gaps, shown]);
}
