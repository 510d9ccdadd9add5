/** The tabs beside the graph. Their code is fetched once the page rests, so that the first picture need not wait. */
import { useEffect, useState, type ComponentType, type ReactNode } from "react";
import { TABS, type Tab } from "../state/page";
import { Empty } from "../ui/parts";
import { useWork } from "./tab_panel";

type Load = () => Promise<ComponentType>;

/** One folder for each tab: its `panel.tsx` exports `Panel`. */
const FOUND = import.meta.glob<{ readonly Panel: ComponentType }>([
  "./*/panel.tsx", "!./graph/panel.tsx", "!./tensor/panel.tsx",
]);
const loadOf = (tab: string): Load => () => FOUND[`./${tab}/panel.tsx`]().then((module) => module.Panel);

type Other = Exclude<Tab, "graph">;
const LOADS = TABS.filter((tab): tab is Other => tab !== "graph").map((tab) => [tab, loadOf(tab)] as const);

/** Code that comes later. React's own way to wait for it shows nothing for a third of a second after it has come. */
class Part {
  #code: ComponentType | null = null;

  constructor(private readonly load: Load) {}

  readonly fetch = async (): Promise<ComponentType> => (this.#code ??= await this.load());

  readonly Panel = (): ReactNode => {
    const [Shown, show] = useState<ComponentType | null>(() => this.#code);
    useWork(Shown === null);
    useEffect(() => {
      if (Shown === null) void this.fetch().then((found) => show(() => found), () => show(() => Lost));
    }, [Shown]);
    return Shown && <Shown />;
  };
}

const Lost = (): ReactNode => <Empty>This view could not be fetched from the server. Reload the page.</Empty>;

const PARTS = LOADS.map(([tab, load]) => [tab, new Part(load)] as const);

/** The same elements every time: a tab draws itself again only when its own data change. */
export const PANELS = Object.fromEntries(
  PARTS.map(([tab, { Panel }]) => [tab, <Panel />]),
) as Readonly<Record<Other, ReactNode>>;

/** The whole page of a trace, which has no tabs. */
export const { Panel: TracePage } = new Part(loadOf("trace"));

/** Has the code of all tabs at hand, so that choosing one is as fast as everything else. */
export function fetchTabs(): void {
  for (const [, part] of PARTS) void part.fetch().catch(() => undefined); // asked for again when it is needed
}
