/** The tabs beside the graph. Their code is fetched once the page rests, so that the first picture need not wait. */
import { lazy, type ComponentType, type ReactNode } from "react";
import { beginWork } from "../state/settled";
import { TABS, type Tab } from "../state/page";

type Load = () => Promise<ComponentType>;

/** One folder for each tab: its `panel.tsx` exports `Panel`. */
const FOUND = import.meta.glob<{ readonly Panel: ComponentType }>([
  "./*/panel.tsx", "!./graph/panel.tsx", "!./tensor/panel.tsx", "!./trace/panel.tsx",
]);
const loadOf = (tab: string): Load => () => FOUND[`./${tab}/panel.tsx`]().then((module) => module.Panel);

type Other = Exclude<Tab, "graph">;
const LOADS = TABS.filter((tab): tab is Other => tab !== "graph").map((tab) => [tab, loadOf(tab)] as const);

function later(load: Load): ReactNode {
  const Panel = lazy(async () => {
    const finish = beginWork();
    return load().then((found) => ({ default: found })).finally(finish);
  });
  return <Panel />;
}

/** The same elements every time: a tab draws itself again only when its own data change. */
export const PANELS = Object.fromEntries(
  LOADS.map(([tab, load]) => [tab, later(load)]),
) as Readonly<Record<Other, ReactNode>>;

/** Has the code of all tabs at hand, so that choosing one is as fast as everything else. */
export function fetchTabs(): void {
  for (const [, load] of LOADS) void load().catch(() => undefined); // asked for again when it is needed
}
