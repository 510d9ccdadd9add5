/** The dependency graph of what is looked at: colours, arrows, selection, folding, the user's own arrangement. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { GraphSelection } from "../../draw/graph_state";
import { withPin } from "../../model/arranging";
import type { GraphModel } from "../../model/graph";
import { presentIn, presentRows } from "../../model/heat_tables";
import type { GraphSource } from "../../model/source";
import type { Union } from "../../model/union";
import { useStep, useTrial } from "../../state/data";
import { reach } from "../../state/keys";
import { act, usePart, useShown } from "../../state/page";
import { Empty } from "../../ui/parts";
import { Arrange } from "./arrange";
import { EdgeControls, FoldControls } from "./controls";
import { useRevealWish } from "./reveal";
import { GraphStage, type WantedNode } from "./stage";
import { useGraphHeat } from "./use_heat";
import { useMarks } from "../findings/use_entries";
import { useShownGraph, type ShownGraph } from "./use_model";

export function GraphPanel() {
  const shown = useShownGraph();
  const { model, union, problem } = shown;
  if (problem && !model) {
    return (
      <section className="stage" aria-label="Dependency graph">
        <Empty>The graph cannot be shown: {problem}</Empty>
      </section>
    );
  }
  if (!model || !union) return <section className="stage" aria-label="Dependency graph" aria-busy="true" />;
  return <Loaded {...shown} model={model} union={union} />;
}

interface Props extends ShownGraph {
  readonly model: GraphModel;
  readonly union: Union;
}

function Loaded({ model, union, open, layout, save, picture, pictureProblem, isCurrent }: Props) {
  const edges = usePart((page) => page.edges);
  const camera = usePart((page) => page.camera);
  const selection = useSelection(model);
  const wanted = useWanted();
  const { heat, scale, words, missing, history, apart } = useGraphHeat(model.source);
  const present = usePresent(union, model.source);
  const shapeAt = useShapes(model.source);
  const marks = useMarks();
  const [arranging, setArranging] = useState(false);
  const latest = useRef(layout);
  latest.current = layout;
  const [problem, setProblem] = useState<string | null>(null);
  const place = useCallback(
    (key: string, at: readonly [number, number]) => void save(withPin(latest.current, key, at)).then(setProblem),
    [save],
  );
  const select = (node: number, record: number): void => {
    const { name } = model.nodes[node];
    const described = record >= 0 ? model.source.nodes[record] : null;
    act.choose(described ? { node: name, role: described.role, pass: described.pass } : { node: name });
  };
  const fit = useRef<(() => void) | null>(null);
  useEffect(() => {
    reach.fit = () => fit.current?.();
    return () => void delete reach.fit;
  }, []);
  return (
    <GraphStage
      model={model}
      picture={picture}
      problem={pictureProblem}
      current={isCurrent}
      open={open}
      onOpen={(groups) => act.page({ open: [...groups] })}
      selection={selection}
      onSelect={select}
      heat={heat}
      scale={scale}
      heatWords={words}
      history={history}
      apart={apart}
      shapeAt={shapeAt}
      allEdges={edges === "all"}
      present={present}
      marks={marks}
      pins={layout.pins}
      wanted={wanted}
      camera={camera}
      onCamera={act.camera}
      arranging={arranging}
      onPlace={place}
      fitRef={fit}
    >
      <EdgeControls />
      <Arrange
        model={model}
        layout={layout}
        save={save}
        node={selection.node}
        arranging={arranging}
        onArranging={setArranging}
      >
        <FoldControls model={model} open={open} />
      </Arrange>
      {missing && <span className="card label" role="note">{missing}</span>}
      {problem && <span className="card arrange-problem" role="alert">{problem}</span>}
    </GraphStage>
  );
}

function useSelection(model: GraphModel): GraphSelection {
  const { node, role, pass } = useShown("a");
  return useMemo(() => ({ node: model.byName.get(node ?? "") ?? -1, role, pass }), [model, node, role, pass]);
}

/** A node is brought into view when somebody has chosen it elsewhere, not when choices gave way to others. */
function useWanted(): WantedNode {
  const chosen = usePart((page) => page.look.node);
  const { node, count } = useRevealWish();
  return useMemo(() => {
    return { name: chosen ?? node, count };
  }, [chosen, node, count]);
}

/** Shapes of the shown step: other steps may have had other batches. */
function useShapes(source: GraphSource): (record: number) => readonly number[] | null {
  const { trial, step, type } = useShown("a");
  const table = useStep(trial, step, type).value;
  return useCallback((record: number) => {
    const { node, role, pass } = source.nodes[record];
    const row = table?.find(node, "value", role, pass) ?? -1;
    return table && row >= 0 ? table.shape(row) : null;
  }, [source, table]);
}

/** Tensors that the shown step has; null if it has all. */
function usePresent(union: Union, source: GraphSource): Uint8Array | null {
  const { trial, step, type, ordinal } = useShown("a");
  const steps = useTrial(trial);
  const table = useStep(trial, step, type);
  const hash = useMemo(() => {
    const { value } = steps;
    const at = value && ordinal !== null ? value.steps.ordinal.indexOf(ordinal) : -1;
    return at < 0 || !value ? "" : (value.graphs[value.steps.graph[at]] ?? "");
  }, [steps, ordinal]);
  const places = union.places.get(hash);
  const rows = places || table.pending ? null : table.value;
  return useMemo(
    () => (places ? presentIn(source.nodes.length, places) : rows && presentRows(source, rows)),
    [source, places, rows],
  );
}
