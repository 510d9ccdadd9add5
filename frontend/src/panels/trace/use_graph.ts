/** The graph of the trace as it is looked at, and what stands out in it. */
import { useMemo } from "react";
import { askTrace, askTraceGraph, askTraceHeat, askTracePath, askTracePicture, askTraceFound } from "../../api/trace";
import type { TraceFacts, TraceFound, TraceGraph } from "../../api/types";
import { isSpelledOut, type OpenGroups } from "../../model/folding";
import type { GraphModel } from "../../model/graph";
import type { Heat, HeatScale } from "../../model/heat";
import { scaleFor, scaleWith } from "../../model/heat_scale";
import { percent } from "../../model/numbers";
import { pictureOf, type Picture } from "../../model/scene";
import {
  bytesText, countText, HEAT_KINDS, secondsText, traceModel, withBoxes, type TraceHeatKind,
} from "../../model/trace";
import { usePart } from "../../state/page";
import { useLoaded, type Loaded } from "../../state/resource";

export const useTrace = (): Loaded<TraceFacts> => useLoaded(askTrace);

export interface ShownTrace {
  readonly graph: TraceGraph;
  readonly model: GraphModel;
  readonly picture: Picture | null;
  readonly open: OpenGroups;
  readonly problem: string | null;
  readonly isCurrent: boolean;
}

/** Null while there is nothing yet. */
export function useShownTrace(): { readonly shown: ShownTrace | null; readonly problem: string | null } {
  const rolled = usePart((page) => page.trace.rolled);
  const chosen = usePart((page) => page.open);
  const graph = useLoaded(askTraceGraph(rolled));
  const numbers = useLoaded(askTracePicture(rolled, chosen));
  const model = useMemo(() => graph.value && traceModel(graph.value), [graph.value]);
  const fits = !graph.pending && !numbers.pending;
  const fresh = useMemo(
    () => (fits && model && numbers.value ? pictureOf(model, numbers.value) : null),
    [fits, model, numbers.value],
  );
  const opened = numbers.value?.head.opened;
  const open = useMemo(() => new Set(chosen && isSpelledOut(chosen) ? chosen : (opened ?? [])), [chosen, opened]);
  const value = graph.value;
  const shown = useMemo(
    () => value && model && { graph: value, model, picture: fresh, open, problem: numbers.problem, isCurrent: fits },
    [value, model, fresh, open, numbers.problem, fits],
  );
  return { shown, problem: graph.problem };
}

export interface Chosen {
  /** Node of the picture; null if there is none of the name that was chosen. */
  readonly node: number | null;
  /** Of the operation in the chosen pass. */
  readonly label: string | null;
  /** The name that was chosen; empty if nobody chose. */
  readonly name: string;
}

/** The selected operation; if nobody chose, the output. */
export function useChosen(shown: ShownTrace | null): Chosen {
  const name = usePart((page) => page.look.node);
  const pass = usePart((page) => page.look.pass);
  return useMemo(() => chosenIn(shown, name, pass), [shown, name, pass]);
}

export function chosenIn(shown: ShownTrace | null, name: string | null, pass: number | null): Chosen {
  const none = { node: null, label: null, name: name ?? "" };
  if (!shown) return none;
  const { graph, model } = shown;
  const node = name === null ? firstLook(model) : (model.byName.get(name) ?? -1);
  if (node < 0) return none;
  const { records } = model.nodes[node];
  const record = records.find((each) => graph.passNumber[each] === pass) ?? records[0];
  return { node, label: graph.label[record], name: name ?? "" };
}

const firstLook = ({ nodes }: GraphModel): number => {
  const output = nodes.findIndex(({ kind }) => kind === "output");
  return output < 0 ? nodes.length - 1 : output;
};

export interface TraceColours {
  readonly heat: Heat | null;
  readonly scale: HeatScale | null;
  readonly present: Uint8Array | null;
  readonly whole: Int32Array | null;
  readonly words: string;
  readonly missing: string | null;
}

const WORDS: Readonly<Record<string, (value: number, digits: number) => string>> = {
  seconds: secondsText, bytes: bytesText, flops: countText, nans: (value) => percent(value),
};

function nothing({ label, isSum }: TraceHeatKind, of: string): string {
  if (isSum) return `Of no operation of this trace the ${label} is known.`;
  if (of === "gradient") return `No gradient in this trace has a ${label}: backward() was not called, or none arrived.`;
  return `No value was kept in this trace, or none is made of numbers, so none has a ${label}.`;
}

export const heatKind = (name: string): TraceHeatKind | null => HEAT_KINDS.find((kind) => kind.name === name) ?? null;

export function useColours(shown: ShownTrace, marked: ReadonlySet<string> | null): TraceColours {
  const { statistic, range } = usePart((page) => page.heat);
  const wanted = usePart((page) => page.trace.of);
  const kind = heatKind(statistic);
  const of = kind?.isSum ? "value" : wanted;
  const loaded = useLoaded(kind ? askTraceHeat(kind.name, of) : null);
  const { model, graph, picture } = shown;
  const numbers = kind ? loaded.value : null;
  const heat = useMemo((): Heat | null => {
    if (!numbers || !kind || numbers.values.length !== graph.label.length) return null;
    return { values: numbers.values, states: Uint8Array.from(numbers.states), words: WORDS[kind.name] };
  }, [numbers, kind, graph]);
  const present = useMemo(() => marked && presentIn(shown.graph, model, marked), [shown.graph, model, marked]);
  return useMemo(() => {
    const none = heat !== null && !heat.states.some((state) => state !== 0);
    const missing = loaded.problem ?? (none && kind ? nothing(kind, of) : null);
    if (!picture) return { heat: null, scale: null, present: null, whole: null, words: "", missing };
    const boxes = withBoxes(picture.scene, heat, present, kind?.isSum ?? false);
    // The sum of a module is another size than its parts: one scale from the smallest part to the largest box.
    const scale = boxes.heat && kind && !none ? scaleWith(scaleFor([boxes.heat], kind.scale), range) : null;
    const words = kind ? `${kind.label}${kind.isSum ? "" : ` of the ${of}`}` : "";
    return { ...boxes, heat: scale ? boxes.heat : null, scale, words, missing };
  }, [heat, present, picture, kind, range, of, loaded.problem]);
}

/** All passes of a layer stand out together where they are one box. */
function presentIn(graph: TraceGraph, model: GraphModel, marked: ReadonlySet<string>): Uint8Array {
  const present = new Uint8Array(graph.label.length);
  graph.label.forEach((label, i) => {
    if (marked.has(label)) for (const record of model.nodes[model.nodeOfRecord[i]].records) present[record] = 1;
  });
  return present;
}

/** What was searched for, and what lies between the two ends of a path. */
export function useAsked(): { readonly found: Loaded<TraceFound>; readonly path: Loaded<TraceFound> } {
  const pattern = usePart((page) => page.trace.pattern);
  const from = usePart((page) => page.trace.from);
  const to = usePart((page) => page.trace.to);
  return {
    found: useLoaded(pattern ? askTraceFound(pattern) : null),
    path: useLoaded(from && to ? askTracePath(from, to) : null),
  };
}

/** Labels that stand out; null: all alike. A path goes before a branch, and that before a search. */
export function useMarked(facts: TraceFacts | null): ReadonlySet<string> | null {
  const { found, path } = useAsked();
  const branch = usePart((page) => page.trace.branch);
  const { from, to } = usePart((page) => page.trace);
  return useMemo(() => {
    if (path.value) return new Set([...path.value.labels, from, to]);
    const decision = facts?.decisions[branch];
    if (decision) return new Set([...decision.steering, ...decision.ops]);
    return found.value && found.value.labels.length > 0 ? new Set(found.value.labels) : null;
  }, [path.value, found.value, facts, branch, from, to]);
}
