/** The graph of the chosen trials as it is looked at, with the user's names and groups. */
import { useMemo } from "react";
import type { Layout, Modules } from "../../api/types";
import { EMPTY_LAYOUT } from "../../model/arranging";
import { defaultOpen, type OpenGroups } from "../../model/folding";
import { buildGraph, type GraphModel } from "../../model/graph";
import type { Union } from "../../model/union";
import { useGraph, useLayout, useModules } from "../../state/data";
import { isComparing, useMainTrial, usePart, useShownPart, useTrials } from "../../state/page";

export interface ShownGraph {
  /** Null while there is none yet. */
  readonly model: GraphModel | null;
  readonly union: Union | null;
  readonly open: OpenGroups;
  readonly layout: Layout;
  readonly save: (layout: Layout) => Promise<string | null>;
  /** Why there is none. */
  readonly problem: string | null;
}

/** Trials whose graphs are put together: those on the page, and the one that is compared with. */
function useGraphTrials(): readonly string[] {
  const trials = useTrials();
  const comparing = usePart(isComparing);
  const other = useShownPart("b", (shown) => shown.trial);
  return useMemo(
    () => (comparing && other !== null && !trials.includes(other) ? [...trials, other] : trials),
    [trials, comparing, other],
  );
}

export function useShownGraph(): ShownGraph {
  const trial = useMainTrial();
  const graph = useGraph(useGraphTrials());
  const modules = useModules(trial);
  const [loaded, save] = useLayout(trial);
  // Names and classes are waited for: boxes that change their width a moment later would make everything jump.
  const ready = graph.value !== null && (modules.value || modules.problem) && (loaded.value || loaded.problem);
  const layout = loaded.value ?? EMPTY_LAYOUT;
  const model = useMemo(
    () => (ready && graph.value ? modelOf(graph.value, modules.value, layout.renames, layout.groups) : null),
    [ready, graph.value, modules.value, layout.renames, layout.groups],
  );
  const chosen = usePart((page) => page.open);
  const open = useMemo(
    () => (chosen ? new Set(chosen) : model ? defaultOpen(model) : new Set<string>()),
    [chosen, model],
  );
  return { model, union: graph.value, open, layout, save, problem: graph.problem ?? loaded.problem };
}

interface Known {
  readonly inputs: readonly unknown[];
  readonly model: GraphModel;
}

let last: Known | null = null;

/** The search and the panel read the same model; it is built once for both. */
function modelOf(
  union: Union,
  modules: Modules | null,
  renames: Layout["renames"],
  groups: Layout["groups"],
): GraphModel {
  const inputs = [union, modules, renames, groups];
  if (!last || last.inputs.some((input, i) => input !== inputs[i])) {
    const moduleTypes = Object.fromEntries((modules?.modules ?? []).map(({ address, type }) => [address, type]));
    last = { inputs, model: buildGraph(union.graph, { moduleTypes, renames, groups }) };
  }
  return last.model;
}
