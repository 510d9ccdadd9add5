/** From a label to its box: opens what hides it, selects it, and has the graph move there. */
import { groupsAround } from "../../model/folding";
import { act } from "../../state/page";
import { wishToSee } from "../graph/reveal";
import type { ShownTrace } from "./use_graph";

export function goTo({ graph, model, open }: ShownTrace, label: string): void {
  const record = graph.label.indexOf(label);
  if (record < 0) return;
  const id = model.nodeOfRecord[record];
  const missing = groupsAround(model, id).filter((address) => !open.has(address));
  if (missing.length) act.page({ open: [...open, ...missing] }, { transient: true });
  const node = graph.node[record];
  act.choose({ node, pass: graph.rolled ? graph.passNumber[record] : null });
  wishToSee(node);
}
