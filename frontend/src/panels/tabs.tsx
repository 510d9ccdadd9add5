/** The tabs beside the graph. Their code is fetched once the page rests, so that the first picture need not wait. */
import { lazy, type ComponentType, type ReactNode } from "react";
import { beginWork } from "../state/settled";
import type { Tab } from "../state/page";

type Load = () => Promise<ComponentType>;

const LOADS: Readonly<Record<Exclude<Tab, "graph">, Load>> = {
  metrics: () => import("./metrics/panel").then((module) => module.MetricsPanel),
  compare: () => import("./compare/panel").then((module) => module.ComparePanel),
  network: () => import("./network/panel").then((module) => module.NetworkPanel),
  notes: () => import("./notes/panel").then((module) => module.NotesPanel),
  views: () => import("./views/panel").then((module) => module.ViewsPanel),
  findings: () => import("./findings/panel").then((module) => module.FindingsPanel),
  run: () => import("./run/panel").then((module) => module.RunPanel),
};

function later(load: Load): ReactNode {
  const Panel = lazy(async () => {
    const finish = beginWork();
    return load().then((found) => ({ default: found })).finally(finish);
  });
  return <Panel />;
}

/** The same elements every time: a tab draws itself again only when its own data change. */
export const PANELS = Object.fromEntries(
  Object.entries(LOADS).map(([tab, load]) => [tab, later(load)]),
) as Readonly<Record<Exclude<Tab, "graph">, ReactNode>>;

/** Has the code of all tabs at hand, so that choosing one is as fast as everything else. */
export function fetchTabs(): void {
  for (const load of Object.values(LOADS)) void load().catch(() => undefined); // asked for again when it is needed
}
