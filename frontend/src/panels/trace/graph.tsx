/** The middle: the graph of the trace, drawn by the same stage as recorded graphs. */
import { useEffect, useMemo, useRef } from "react";
import type { GraphSelection } from "../../draw/graph_state";
import type { Marks } from "../../model/findings";
import { reach } from "../../state/keys";
import { act, usePart } from "../../state/page";
import type { TraceFacts } from "../../api/types";
import { EdgeControls, FoldControls } from "../graph/controls";
import { useRevealWish } from "../graph/reveal";
import { GraphStage } from "../graph/stage";
import { TraceControls } from "./controls";
import { useColours, useMarked, type Chosen, type ShownTrace } from "./use_graph";

interface Props {
  readonly facts: TraceFacts | null;
  readonly shown: ShownTrace;
  readonly chosen: Chosen;
}

export function TraceStage({ facts, shown, chosen }: Props) {
  const { model, picture, open, problem, isCurrent } = shown;
  const edges = usePart((page) => page.edges);
  const camera = usePart((page) => page.camera);
  const node = usePart((page) => page.look.node);
  const pass = usePart((page) => page.look.pass);
  const marked = useMarked(facts);
  const colours = useColours(shown, marked);
  const selection = useMemo(
    (): GraphSelection => ({ node: chosen.node ?? -1, role: null, pass }), [chosen.node, pass],
  );
  const { node: wish, count } = useRevealWish();
  const wanted = useMemo(() => ({ name: node ?? wish, count }), [node, wish, count]);
  const fit = useRef<(() => void) | null>(null);
  useEffect(() => {
    reach.fit = () => fit.current?.();
    return () => void delete reach.fit;
  }, []);
  const select = (id: number, record: number): void => {
    const { name } = model.nodes[id];
    act.choose(record < 0 ? { node: name } : { node: name, pass: model.source.nodes[record].pass });
  };
  return (
    <GraphStage
      model={model}
      picture={picture}
      problem={problem}
      current={isCurrent}
      open={open}
      onOpen={(groups) => act.page({ open: [...groups] })}
      selection={selection}
      onSelect={select}
      heat={colours.heat}
      scale={colours.scale}
      heatWords={colours.words}
      present={colours.present}
      whole={colours.whole}
      marks={useBranchMarks(facts, shown)}
      allEdges={edges === "all"}
      wanted={wanted}
      beginsThere
      camera={camera}
      onCamera={act.camera}
      fitRef={fit}
    >
      <TraceControls facts={facts} label={chosen.label} />
      <EdgeControls />
      <span className="card"><FoldControls model={model} open={open} /></span>
      {colours.missing && <span className="card label" role="note">{colours.missing}</span>}
    </GraphStage>
  );
}

/** What a value of a tensor decided stands beside the operation that made the value. */
function useBranchMarks(facts: TraceFacts | null, { graph }: ShownTrace): Marks | null {
  return useMemo(() => {
    if (!facts || facts.decisions.length === 0) return null;
    const nodeOf = new Map(graph.label.map((label, i) => [label, graph.node[i]]));
    const marks = new Map<string, { severity: "info"; begins: boolean; words: string[] }>();
    for (const { kind, text, branch, steering } of facts.decisions) {
      const words = `decides ${kind} ${text}: ${branch}`;
      for (const label of steering) {
        const node = nodeOf.get(label);
        if (node === undefined) continue;
        const mark = marks.get(node) ?? { severity: "info", begins: true, words: [] };
        if (!mark.words.includes(words)) mark.words.push(words);
        marks.set(node, mark);
      }
    }
    return marks;
  }, [facts, graph]);
}
