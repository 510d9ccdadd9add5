/** The graph of the chosen trials as it is looked at, with the user's names and groups. */
import { useMemo } from "react";
import type { Layout, Modules } from "../../api/types";
import { EMPTY_LAYOUT } from "../../model/arranging";
import { isSpelledOut, type OpenGroups } from "../../model/folding";
import { buildGraph, type GraphModel } from "../../model/graph";
import { pictureOf, type Picture, type PictureNumbers } from "../../model/scene";
import type { Union } from "../../model/union";
import { useGraph, useLayout, useModules, usePictureNumbers } from "../../state/data";
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
  /** Where everything is: the last picture that was there. */
  readonly picture: Picture | null;
  readonly pictureProblem: string | null;
  /** False while another picture is asked for. */
  readonly isCurrent: boolean;
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
  const numbers = usePictureNumbers(model ? graph.value : null, trial, chosen, layout);
  const isCurrent = model !== null && numbers.value !== null && !numbers.pending;
  const picture = isCurrent && model && numbers.value ? placed(model, numbers.value) : lastPicture;
  const opened = numbers.value?.head.opened;
  const open = useMemo(
    () => new Set(chosen && isSpelledOut(chosen) ? chosen : (opened ?? [])),
    [chosen, opened],
  );
  return {
    model, union: graph.value, open, layout, save, problem: graph.problem ?? loaded.problem, picture,
    pictureProblem: numbers.problem, isCurrent,
  };
}

let lastPicture: Picture | null = null;
const pictures = new WeakMap<PictureNumbers, Picture>();

/** The same picture for the same answer, whoever asks. */
function placed(model: GraphModel, numbers: PictureNumbers): Picture {
  let found = pictures.get(numbers);
  if (found?.scene.model !== model) pictures.set(numbers, (found = pictureOf(model, numbers)));
  return (lastPicture = found);
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
